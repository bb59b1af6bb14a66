// SPDX-License-Identifier: Apache-2.0
// What machines of one job must have in common, and what each must have alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "toolkit/doctor/checks/checks.h"

namespace belay::doctor {
namespace {

// "192.0.2.10" as a number.
std::optional<uint32_t> AddressOf(const std::string& text) {
  uint32_t address = 0;
  const auto parts = Split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  for (const std::string& part : parts) {
    unsigned value = 256;
    const auto [end, error] =
        std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() ||
        value > 255) {
      return std::nullopt;
    }
    address = address << 8 | value;
  }
  return address;
}

struct Port {
  std::string text;
  uint32_t address = 0, mask = 0xffffff00;
};

// The device ports of /etc/hccn.conf: address_0=..., netmask_0=...
std::map<int, Port> PortsOf(Machine& machine) {
  std::map<int, Port> ports;
  const auto conf = machine.Read("/etc/hccn.conf");
  if (!conf) return ports;
  for (const auto& [name, value] : KeyValues(*conf)) {
    const bool is_address = name.starts_with("address_");
    if (!is_address && !name.starts_with("netmask_")) continue;
    int device = -1;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data() + 8, end, device).ptr != end) continue;
    const auto number = AddressOf(value);
    if (!number || device < 0) continue;
    Port& port = ports[device];
    (is_address ? port.address : port.mask) = *number;
    if (is_address) port.text = value;
  }
  std::erase_if(ports, [](const auto& one) { return one.second.text.empty(); });
  return ports;
}

// The states of the TLS switch, "0" and "1".
std::set<std::string> TlsOf(Machine& machine, const Facts& facts) {
  std::set<std::string> states;
  for (const int node : facts.nodes) {
    const CommandOutput state =
        machine.Run(fmt::format("hccn_tool -i {} -tls -g", node));
    if (!state.is_found) break;
    const size_t at = state.out.find("tls switch[");
    if (at != std::string::npos) states.insert(state.out.substr(at + 11, 1));
  }
  return states;
}

std::string Joined(const std::set<std::string>& items) {
  std::string text;
  for (const std::string& item : items) {
    text += (text.empty() ? "" : ", ") + item;
  }
  return text;
}

void CompareAddresses(Patient& p, const Peer& peer,
                      const std::map<int, Port>& mine,
                      const std::map<int, Port>& theirs) {
  std::set<std::string> twice, apart;
  for (const auto& [device, port] : mine) {
    for (const auto& [other, its] : theirs) {
      if (port.address == its.address) twice.insert(port.text);
    }
    const auto same = theirs.find(device);
    if (same == theirs.end()) continue;
    if ((port.address & port.mask) !=
        (same->second.address & same->second.mask)) {
      apart.insert(
          fmt::format("{}: {} | {}", device, port.text, same->second.text));
    }
  }
  if (!twice.empty()) {
    p.Add("DOCT-076", "/etc/hccn.conf",
          fmt::format("also on {}: {}", peer.name, Joined(twice)),
          "hccn_tool -i 0 -ip -s address ADDRESS netmask MASK");
  } else if (!apart.empty()) {
    p.Add("DOCT-077", "/etc/hccn.conf",
          fmt::format("device: here | {}: {}", peer.name, Joined(apart)),
          "hccn_tool -i 0 -route -g");
  }
}

void CompareTls(Patient& p, const Peer& peer, const Facts& other) {
  std::set<std::string> here = TlsOf(p.machine, p.facts);
  const std::set<std::string> there = TlsOf(*peer.machine, other);
  // Differences on one machine are a finding of that machine.
  if (here.size() != 1 || there.size() != 1 || here == there) return;
  p.Add("DOCT-078", "hccn_tool -tls -g",
        fmt::format("switch {} here, {} on {}", *here.begin(), *there.begin(),
                    peer.name),
        "for i in $(seq 0 7); do hccn_tool -i $i -tls -s enable 0; done");
}

void CompareVersions(Patient& p, const Peer& peer, const Facts& other) {
  const Facts& facts = p.facts;
  std::string list;
  const auto compare = [&](const std::string& name, const std::string& here,
                           const std::string& there) {
    if (here.empty() || there.empty() || here == there) return;
    list += fmt::format("{}{} {} | {}", list.empty() ? "" : ", ", name, here,
                        there);
  };
  compare("driver", facts.driver, other.driver);
  compare("CANN", facts.cann, other.cann);
  for (const char* name : {"torch", "torch_npu", "vllm", "vllm_ascend"}) {
    compare(name, facts.Version(name), other.Version(name));
  }
  if (facts.family != Family::kUnknown && other.family != Family::kUnknown) {
    compare("chip", std::string(NameOf(facts.family)),
            std::string(NameOf(other.family)));
  }
  if (!list.empty()) {
    p.Add("DOCT-079", peer.name, list, "belay doctor --against " + peer.name);
  }
  // Each side reads its own; the collectives need one opinion.
  std::string variables;
  for (const char* name :
       {"HCCL_ALGO", "HCCL_BUFFSIZE", "HCCL_CONNECT_TIMEOUT",
        "HCCL_DETERMINISTIC", "HCCL_EXEC_TIMEOUT", "HCCL_IF_BASE_PORT",
        "HCCL_INTRA_ROCE_ENABLE", "HCCL_OP_EXPANSION_MODE", "HCCL_RDMA_SL",
        "HCCL_RDMA_TC"}) {
    const std::string here = facts.Variable(name);
    const std::string there = other.Variable(name);
    if (here == there) continue;
    variables +=
        fmt::format("{}{} {} | {}", variables.empty() ? "" : ", ", name,
                    here.empty() ? "-" : here, there.empty() ? "-" : there);
  }
  if (!variables.empty()) {
    p.Add("DOCT-085", peer.name, variables, "env | grep HCCL_");
  }
}

// "3 packets transmitted, 0 received, 100.00% packet loss". Nothing is said of
// an answer of another kind.
bool SaysLost(const std::string& out) {
  return out.find(" 0 received") != std::string::npos ||
         out.find("100.00% packet loss") != std::string::npos ||
         out.find("100% packet loss") != std::string::npos;
}

void Ping(Patient& p, const Peer& peer, const std::map<int, Port>& theirs) {
  size_t n_tried = 0, n_lost = 0;
  std::string first;
  for (const int node : p.facts.nodes) {
    const auto port = theirs.find(node);
    if (port == theirs.end()) continue;
    const std::string command = fmt::format(
        "hccn_tool -i {} -ping -g address {}", node, port->second.text);
    const CommandOutput answer = p.machine.Run(command);
    if (!answer.is_found) return;
    ++n_tried;
    if (!SaysLost(answer.out)) continue;
    ++n_lost;
    if (first.empty()) first = command;
  }
  if (n_lost == 0) return;
  p.Add("DOCT-075", first,
        fmt::format("{} of {} device ports of {} do not answer", n_lost,
                    n_tried, peer.name),
        first);
}

}  // namespace

void CheckPeers(Patient& patient) {
  for (const Peer& peer : patient.peers) {
    const Facts other = ReadFacts(*peer.machine);
    const auto theirs = PortsOf(*peer.machine);
    CompareAddresses(patient, peer, PortsOf(patient.machine), theirs);
    CompareTls(patient, peer, other);
    CompareVersions(patient, peer, other);
    Ping(patient, peer, theirs);
  }
}

}  // namespace belay::doctor
