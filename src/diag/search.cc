// SPDX-License-Identifier: Apache-2.0
#include "diag/search.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace belay::diag {
namespace {

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

void AppendLower(std::string_view text, std::string& out) {
  for (const char c : text) {
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  out += '\n';
}

// Words that say nothing about the matter.
bool IsStopWord(std::string_view word) {
  static constexpr std::string_view kWords[] = {
      "a",    "an",   "and",  "are",   "as",   "at",   "be",   "but",  "by",
      "can",  "do",   "does", "for",   "from", "has",  "have", "how",  "i",
      "if",   "in",   "is",   "it",    "my",   "no",   "not",  "of",   "on",
      "or",   "so",   "that", "the",   "then", "this", "to",   "was",  "we",
      "what", "when", "why",  "where", "with", "me",   "its",  "error"};
  return std::find(std::begin(kWords), std::end(kWords), word) !=
         std::end(kWords);
}

// Without the endings that a text may have or lack.
std::string_view Stem(std::string_view word) {
  for (const std::string_view ending : {"ing", "ed", "es", "s"}) {
    if (word.size() >= ending.size() + 4 && word.ends_with(ending)) {
      word.remove_suffix(ending.size());
      return word;
    }
  }
  return word;
}

struct Term {
  std::string text;
  bool is_word = true;  // else a piece of Chinese, found anywhere
};

// Pairs of neighbouring characters of a run of multi-byte characters (3 bytes
// each for Chinese); a single one stands alone.
void AddPairs(std::string_view run, std::vector<Term>& terms) {
  if (run.size() < 6) {
    terms.push_back({std::string(run), false});
    return;
  }
  for (size_t i = 0; i + 6 <= run.size(); i += 3) {
    terms.push_back({std::string(run.substr(i, 6)), false});
  }
}

std::vector<Term> TermsOf(std::string_view query) {
  std::string lower;
  AppendLower(query.substr(0, 2000), lower);
  std::vector<Term> terms;
  for (size_t i = 0; i < lower.size();) {
    size_t end = i;
    if (IsWordByte(lower[i])) {
      while (IsWordByte(lower[end])) ++end;
      const auto word = std::string_view(lower).substr(i, end - i);
      if (!IsStopWord(word)) terms.push_back({std::string(Stem(word)), true});
    } else if (static_cast<uint8_t>(lower[i]) >= 0xe3 &&
               static_cast<uint8_t>(lower[i]) <= 0xe9) {
      while (static_cast<uint8_t>(lower[end]) >= 0xe3 &&
             static_cast<uint8_t>(lower[end]) <= 0xe9 &&
             end + 3 <= lower.size()) {
        end += 3;
      }
      if (end > i) AddPairs(std::string_view(lower).substr(i, end - i), terms);
    }
    i = std::max(end, i + 1);
  }
  const auto by_text = [](const Term& a, const Term& b) {
    return a.text < b.text;
  };
  std::sort(terms.begin(), terms.end(), by_text);
  terms.erase(std::unique(terms.begin(), terms.end(),
                          [](const Term& a, const Term& b) {
                            return a.text == b.text;
                          }),
              terms.end());
  if (terms.size() > 40) terms.resize(40);
  return terms;
}

// Does `term` stand in `text`? Words match from their start; one of up to three
// letters must match whole.
bool Holds(std::string_view text, const Term& term) {
  for (size_t at = text.find(term.text); at != std::string_view::npos;
       at = text.find(term.text, at + 1)) {
    if (!term.is_word) return true;
    const bool starts = at == 0 || !IsWordByte(text[at - 1]);
    const size_t end = at + term.text.size();
    const bool ends = end >= text.size() || !IsWordByte(text[end]);
    if (starts && (ends || term.text.size() > 3)) return true;
  }
  return false;
}

// An entry's texts by weight, in lower case.
struct Fields {
  std::string head;  // title, codes, names
  std::string keys;  // keywords
  std::string body;  // cause, check, fix, versions
};

Fields FieldsOf(const Entry& entry) {
  Fields fields;
  for (const std::string* text : {&entry.title.en, &entry.title.zh}) {
    AppendLower(*text, fields.head);
  }
  for (const Code& code : entry.codes) {
    for (const std::string* text :
         {&code.code, &code.symbol, &code.title.en, &code.title.zh}) {
      AppendLower(*text, fields.head);
    }
  }
  for (const std::string& name : entry.names) AppendLower(name, fields.head);
  for (const std::string& word : entry.keywords) AppendLower(word, fields.keys);
  for (const Text* text : {&entry.cause, &entry.check, &entry.fix}) {
    AppendLower(text->en, fields.body);
    AppendLower(text->zh, fields.body);
  }
  for (const std::string& word : entry.versions) AppendLower(word, fields.body);
  for (const std::string& word : entry.socs) AppendLower(word, fields.body);
  return fields;
}

double WeightIn(const Fields& fields, const Term& term) {
  if (Holds(fields.head, term)) return 4;
  if (Holds(fields.keys, term)) return 3;
  return Holds(fields.body, term) ? 1.5 : 0;
}

// How much better an entry is that holds the whole query as it was written: as
// one of its keywords or titles, in one, or somewhere in its text.
double PhraseFactor(const Fields& fields, const std::string& phrase) {
  if (phrase.size() < 5) return 1;  // with its newline
  for (const std::string* field : {&fields.keys, &fields.head}) {
    const size_t at = ("\n" + *field).find("\n" + phrase);
    if (at != std::string::npos) return 4;
  }
  const std::string_view words(phrase.data(), phrase.size() - 1);
  if (fields.keys.find(words) != std::string::npos ||
      fields.head.find(words) != std::string::npos) {
    return 2;
  }
  return fields.body.find(words) != std::string::npos ? 1.3 : 1;
}

// What finding a term is worth: the rarer, the more. Two characters that stand
// together nowhere are the border of two words.
double RarityOf(const Term& term, double n_with, size_t n_entries) {
  if (n_with == 0 && !term.is_word) return 1;
  return std::log(1 + static_cast<double>(n_entries) / std::max(n_with, 0.5));
}

}  // namespace

std::vector<Ranked> SearchWords(const Catalogue& catalogue,
                                std::string_view query) {
  const std::vector<Term> terms = TermsOf(query);
  if (terms.empty()) return {};
  const auto entries = catalogue.entries();
  std::string phrase;
  AppendLower(query, phrase);
  std::vector<std::vector<double>> weights;  // [entry][term]
  std::vector<double> factors;               // [entry]
  std::vector<double> n_with(terms.size(), 0);
  for (const Entry& entry : entries) {
    const Fields fields = FieldsOf(entry);
    factors.push_back(PhraseFactor(fields, phrase));
    auto& row = weights.emplace_back(terms.size());
    for (size_t t = 0; t < terms.size(); ++t) {
      row[t] = WeightIn(fields, terms[t]);
      n_with[t] += row[t] > 0 ? 1 : 0;
    }
  }
  std::vector<double> rarity(terms.size());
  double total = 0;
  for (size_t t = 0; t < terms.size(); ++t) {
    rarity[t] = RarityOf(terms[t], n_with[t], entries.size());
    total += rarity[t];
  }
  std::vector<Ranked> ranked;
  for (size_t e = 0; e < entries.size(); ++e) {
    double score = 0, covered = 0;
    for (size_t t = 0; t < terms.size(); ++t) {
      score += weights[e][t] * rarity[t];
      covered += weights[e][t] > 0 ? rarity[t] : 0;
    }
    const double coverage = covered / total;
    if (coverage < 0.5) continue;
    ranked.push_back(
        {&entries[e], score * coverage * coverage * factors[e], coverage});
  }
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
  return ranked;
}

}  // namespace belay::diag
