# SPDX-License-Identifier: Apache-2.0
# . set_env.sh: lets a shell find cannsim as if it were a CANN toolkit.
cannsim_root=@CANNSIM_ROOT@
export ASCEND_TOOLKIT_HOME=$cannsim_root
export ASCEND_HOME_PATH=$cannsim_root
export ASCEND_OPP_PATH=$cannsim_root/opp
export PATH=$cannsim_root/bin${PATH:+:$PATH}
export LD_LIBRARY_PATH=$cannsim_root/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset cannsim_root
