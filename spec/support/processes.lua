-- processes.lua: a cluster whose tasks a test starts itself, when it likes: one that is lost comes back later, or never.
local support = require "spec.support.init"
local ports = require "spec.support.ports"

local processes = {}

-- Addresses of this machine that nobody else gets, as JSON.
local function free_addresses(count)
  local list, first = {}, ports.take(count)
  for i = 1, count do list[i] = ('"127.0.0.1:%d"'):format(first + i - 1) end
  return "[" .. table.concat(list, ",") .. "]"
end

-- Runs `command` as each of the workers of a cluster, with {folder} replaced by a new folder. lives[i]: of worker i - 1, when each of its
-- lives begins: "" for at once, or when there is a file of that name in the folder. environment: "NAME=value ...". Returns what each life
-- said and its exit code, lists [worker][life], and everything as one text.
function processes.run(lives, command, environment)
  local folder, addresses, lines = support.folder(), free_addresses(#lives), {}
  for i, beginnings in ipairs(lives) do
    local config = ('{"cluster":{"worker":%s},"task":{"type":"worker","index":%d}}'):format(addresses, i - 1)
    local life = {}
    for k, file in ipairs(beginnings) do
      life[k] = ("%s TF_CONFIG='%s' FLOW_SECRET=%s FLOW_THREADS=1 FLOWLUA_PATH=%slua %s timeout -k 5 60 %s >%s/said.%d.%d 2>&1; "
        .. "echo $? >%s/code.%d.%d"):format(file == "" and "env" or ("until [ -e %s/%s ]; do sleep 0.02; done; env"):format(folder, file),
        config, ("5e"):rep(32), support.root, environment or "", command:gsub("{folder}", folder), folder, i, k, folder, i, k)
    end
    lines[#lines + 1] = ("( %s ) &"):format(table.concat(life, "; "))
  end
  local script = support.file("lives.sh", table.concat(lines, "\n") .. "\nwait\n")
  support.run("timeout -k 5 110 sh " .. script)
  local said, all = {}, {}
  for i, beginnings in ipairs(lives) do
    said[i] = {}
    for k in ipairs(beginnings) do
      local text = support.read(("%s/said.%d.%d"):format(folder, i, k))
      said[i][k] = { text = text, code = tonumber(support.read(("%s/code.%d.%d"):format(folder, i, k))) }
      all[#all + 1] = ("---- worker:%d, life %d, exit code %s\n%s"):format(i - 1, k, said[i][k].code, text)
    end
  end
  return said, table.concat(all, "\n")
end

return processes
