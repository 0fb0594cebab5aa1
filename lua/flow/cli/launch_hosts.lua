-- cli/launch_hosts.lua: the part of flowlua launch that knows other machines: which task runs where, what ssh is called with, and the order
-- that `flowlua --remote` reads there (bindings/cli/remote.h).

local flow = require "flow"
local shell = require "flow.shell"

local FIRST_PORT, MOST_ORDER = 2222, 2^20
-- BatchMode: nobody can type a password. A host that is cut off is noticed after half a minute.
local SSH = "ssh -x -T -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=10 -o ServerAliveCountMax=3"

local hosts = {}

-- "a,user@b:2,[fe80::1]:4" as { { name = "a", slots = 1 }, ... }, how many slots there are in all, and whether anybody named a number.
function hosts.parse(text, refuse)
  local list, slots, counted = {}, 0, false
  for part in text:gmatch "[^,%s]+" do
    local name, count = part:match "^(.-):(%d+)$"
    if not name or name:find ":" and not name:find "%]$" then name, count = part, nil end
    local number = tonumber(count or 1)
    if name == "" or name:find "^%-" or number < 1 or number > 1000 then
      refuse("--hosts is a list such as a,b:2 with 1 to 1000 workers for each, got %q", part)
    end
    list[#list + 1] = { name = name, slots = number }
    slots, counted = slots + number, counted or count ~= nil
  end
  if text ~= "" and #list == 0 then refuse("--hosts is a list such as a,b, got %q", text) end
  return list, slots, counted
end

-- The host of each of `count` workers, in order: as many as a host has slots, or, without numbers, in equal parts.
local function places(options, count, refuse)
  local list, slots, counted = hosts.parse(options.hosts, refuse)
  local result = {}
  if counted and count > slots then refuse("--workers %d: the hosts have room for %d (--hosts a,b:2)", count, slots) end
  for index = 0, count - 1 do
    local place, left = 1, index
    if counted then
      while left >= list[place].slots do place, left = place + 1, left - list[place].slots end
    else
      place = math.floor(index * #list / count) + 1
    end
    result[#result + 1] = list[place].name
  end
  return result, list[1].name
end

-- The tasks in the order of launch.lua's own: { job =, index =, host =, address =, share = }; share: how many that compute are on its host.
-- What is not a worker runs on the first host.
function hosts.plan(options, most, refuse)
  local _, slots = hosts.parse(options.hosts, refuse)
  local count = options.workers >= 0 and options.workers or slots
  local tasks, ports, shares = {}, {}, {}
  local all = count + options.parameter_servers + (options.chief and 1 or 0)
  if all > most then refuse("%d tasks: at most %d are possible", all, most) end
  local machines, first = places(options, count, refuse)
  local function add(job, index, name)
    local port = ports[name] or (options.start_port > 0 and options.start_port or FIRST_PORT)
    if port > 65535 then refuse("--start-port %d: the tasks of %s need ports above 65535", options.start_port, name) end
    local task = { job = job, index = index, host = name }
    if job ~= "evaluator" then
      task.address, ports[name] = ("%s:%d"):format(name:match "@(.*)$" or name, port), port + 1
    end
    if job == "chief" or job == "worker" then shares[name] = (shares[name] or 0) + 1 end
    tasks[#tasks + 1] = task
  end
  if options.chief then add("chief", 0, first) end
  for index, name in ipairs(machines) do add("worker", index - 1, name) end
  for index = 0, options.parameter_servers - 1 do add("ps", index, first) end
  if options.evaluator then add("evaluator", 0, first) end
  for _, task in ipairs(tasks) do task.share = shares[task.host] end
  return tasks
end

-- What starts this program on a host.
function hosts.command(options, name, program, refuse)
  local text = options.ssh ~= "" and options.ssh or os.getenv "FLOW_SSH" or SSH
  local command = {}
  for word in text:gmatch "%S+" do command[#command + 1] = word end
  if #command == 0 then refuse("--ssh is a command such as \"ssh -p 2222\", got %q", text) end
  command[#command + 1] = name
  command[#command + 1] = ("exec %s --remote"):format(shell.quote(program))
  return command
end

-- The variables that go with a task; those that only this process can use do not.
function hosts.variables(host)
  local names = {}
  for _, name in ipairs(host.variables("FLOW", "LUA_")) do
    if name ~= "FLOW_LISTEN_DESCRIPTOR" and name ~= "FLOW_SSH" then names[#names + 1] = name end
  end
  return names
end

-- The text that `flowlua --remote` reads from its standard input: a line with the version, which has to be the same there, and the number
-- of bytes; then entries that end with a zero byte: F the folder to run in, E a variable NAME=value, U a variable to remove, S among how
-- many tasks of this host the cores are shared out, A the program and its arguments. work: { folder =, environment = { NAME = text or false
-- }, share =, command = {} }. What environment does not name goes as it is here, if it is one of hosts.variables.
function hosts.order(host, work, refuse)
  local texts = { "F" .. work.folder }
  local function add(kind, text) texts[#texts + 1] = kind .. text end
  for _, name in ipairs(hosts.variables(host)) do
    if work.environment[name] == nil then add("E", name .. "=" .. os.getenv(name)) end
  end
  for name, value in pairs(work.environment) do
    if value then add("E", name .. "=" .. value) else add("U", name) end
  end
  if work.share then add("S", work.share) end
  for _, text in ipairs(work.command) do add("A", text) end
  local order = table.concat(texts, "\0") .. "\0"
  order = ("flowlua %s %d\n"):format(flow.version, #order) .. order
  if #order > MOST_ORDER then refuse("variables and arguments of a task have %d bytes, at most %d fit", #order, MOST_ORDER) end
  return order
end

return hosts
