-- slurm_spec.lua: jobs that flowlua submit writes for Slurm run under a Slurm of one node, which is started here and ended again. Where
-- Slurm, munge or the rights are missing the case is left out by name.
local support = require "spec.support.init"
local ports = require "spec.support.ports"

local SCRIPT = [[
folder=FOLDER
export SLURM_CONF=$folder/slurm.conf XDG_STATE_HOME=$folder/state FLOWLUA_PATH='ROOTlua' FLOW_THREADS=1 PATH=PROGRAMS:$PATH
cd $folder; mkdir saved spool; chmod 755 .; host=$(hostname -s); port=PORT
cat > slurm.conf <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_res
SelectTypeParameters=CR_CPU
StateSaveLocation=$folder/saved
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/c.pid
SlurmdPidFile=$folder/d.pid
SlurmctldPort=$port
SlurmdPort=$((port + 1))
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
END
head -c 1024 /dev/urandom > key; chmod 600 key
munged -F --force --key-file=$folder/key --socket=$folder/munge.socket --pid-file=$folder/m.pid --log-file=$folder/m.log \
  --seed-file=$folder/seed >m.out 2>&1 & m=$!
sleep 1; slurmctld -D >c.out 2>&1 & c=$!
sleep 2; slurmd -D >d.out 2>&1 & d=$!
trap 'kill $d $c $m; wait' EXIT
for i in $(seq 40); do timeout 5 sinfo -h -o %T 2>&1 | grep -q idle && break; sleep 0.5; done
timeout 5 sinfo -h -o "node %T"
cd 'ROOTlua/examples/distributed'
sent() { sbatch --nodes=1 --ntasks=$1 --ntasks-per-node=$1 --overcommit --output=$folder/$2.log $XDG_STATE_HOME/flowlua/jobs/$2/job.sh; }
flowlua submit one --backend slurm --job-dir $folder/one --no-submit managed_job.lua; sent 1 one
flowlua submit two --backend slurm --worker-count 1 --job-dir $folder/two --no-submit managed_job.lua; sent 2 two
for i in $(seq 100); do [ -z "$(timeout 5 squeue -h)" ] && break; sleep 0.5; done
cat $folder/*.log
]]

-- What is in the way of a Slurm here; nil: nothing.
local function missing()
  for _, name in ipairs { "munged", "slurmctld", "slurmd", "sbatch", "srun" } do
    if os.execute(("command -v %s >/dev/null"):format(name)) ~= 0 then
      return ("not tested: %s is not installed (munge, slurmctld, slurmd, slurm-client)"):format(name)
    end
  end
  if support.run "id -u" ~= "0\n" then return "not tested: only root can start slurmd" end
end

it("a job for Slurm runs there: one task, and two that find each other", function()
  local why = missing()
  if why then return pending(why) end
  local names = { FOLDER = support.folder(), ROOT = support.root, PROGRAMS = support.program:match "^(.*)/", PORT = ports.take(2) }
  local path = support.file("slurm.sh", (SCRIPT:gsub("%u+", names)))
  local text = support.run("timeout -k 5 150 bash " .. path)
  if not text:find("node idle", 1, true) then return pending("not tested: Slurm does not start on this machine") end
  assert.truthy(text:find("worker 0 of 1: test accuracy", 1, true), text)
  for task = 0, 1 do assert.truthy(text:find(("worker %d of 2: test accuracy"):format(task), 1, true), text) end
end)
