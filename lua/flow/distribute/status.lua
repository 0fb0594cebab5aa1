-- status.lua: what this process shows of its training over HTTP, where FLOW_STATUS_PORT says so: a page for people, /status as JSON,
-- /metrics for Prometheus. Of a cluster the chief shows it.
--
--   status.say { state = "training", epoch = 2, step = 300, logs = { loss = 0.3 } }
--   status.say_point { loss = 0.3 }        the next point of each curve; status.begin() begins with empty ones

local native = require "flow.ffi"
local host = require "flow.host"
local errors = require "flow.errors"
local json = require "flow.json"
local log = require "flow.log"

local C, check, raise = native.C, native.check, errors.raise
local status = {}
local MOST_POINTS = 500       -- of a curve: older ones go

local monitor = nil           -- nil: nobody has asked yet; false: there is none
local said = {}

-- FLOW_STATUS_PORT: a port of the loopback interface, or an address with a port.
local function open()
  local where = host.getenv("FLOW_STATUS_PORT")
  if not where or where == "" then return false end
  local address = where:find("^%d+$") and "127.0.0.1:" .. where or where
  local out = native.out("flow_monitor")
  local ok, problem = pcall(function() check(C.flow_monitor_open(address, out)) end)
  if not ok then
    log.warning("FLOW_STATUS_PORT=%s: this training has no status page: %s", where, native.string(C.flow_last_error()))
    return false, problem
  end
  local handle = native.own(out, C.flow_monitor_close)
  log.info("status: http://%s:%d/", address:match("^(.*):[^:]*$"), C.flow_monitor_port(handle))
  return handle
end

-- Whether somebody may look.
function status.is_shown()
  if monitor == nil then monitor = open() end
  return monitor ~= false
end

-- Another process of the cluster shows it.
function status.leave() monitor = false end

local function prometheus_name(key) return "flow_" .. key:gsub("[^%w_]", "_") end

-- Numbers as Prometheus reads them; those of logs by their names.
local function metrics()
  local lines = {}
  local function add(name, label, value)
    if type(value) == "number" then lines[#lines + 1] = ("%s%s %.17g"):format(name, label, value) end
  end
  for _, key in ipairs { "step", "epoch", "epochs", "steps_per_epoch", "samples_per_second" } do
    if said[key] then
      lines[#lines + 1] = ("# TYPE %s gauge"):format(prometheus_name(key))
      add(prometheus_name(key), "", said[key])
    end
  end
  if next(said.logs or {}) then lines[#lines + 1] = "# TYPE flow_log gauge" end
  for key, value in pairs(said.logs or {}) do add("flow_log", ('{name="%s"}'):format(key:gsub('["\\\n]', "_")), value) end
  return table.concat(lines, "\n") .. (#lines > 0 and "\n" or "")
end

-- JSON has neither infinity nor NaN: null.
local function finite(value)
  if type(value) == "number" then return value - value == 0 and value or json.null end
  if type(value) ~= "table" then return value end
  local copy = {}
  for key, entry in pairs(value) do copy[key] = finite(entry) end
  return copy
end

-- Shows these values beside those that were said before.
function status.say(values)
  if not status.is_shown() then return end
  for key, value in pairs(values) do said[key] = value end
  check(C.flow_monitor_say(monitor, json.encode(finite(said)), metrics()))
end

function status.begin(values)
  said.history, said.logs = {}, {}
  status.say(values)
end

-- A point of each curve, by name; of a long training the oldest points go.
function status.say_point(logs)
  for key, value in pairs(logs) do
    local curve = said.history[key] or {}
    said.history[key] = curve
    curve[#curve + 1] = value
    if #curve > MOST_POINTS then table.remove(curve, 1) end
  end
  status.say { logs = logs }
end

-- What a loop says that is not fit's (flow.distribute.report): numbers by their names, of which step, epoch and epochs are not losses.
function status.report(values)
  if type(values) ~= "table" or getmetatable(values) then
    raise("distribute.report takes a table such as { step = 300, loss = 0.2 }, got %s", errors.describe(values))
  end
  local place, logs = { state = "training" }, {}
  for key, value in pairs(values) do
    if type(key) ~= "string" or type(value) ~= "number" then
      raise("distribute.report: the values are numbers by their names, got %s = %s", tostring(key), errors.describe(value))
    end
    local to = (key == "step" or key == "epoch" or key == "epochs") and place or logs
    to[key] = value
  end
  if not status.is_shown() then return end
  if not said.history then status.begin {} end
  status.say(place)
  status.say_point(logs)
end

-- A worker (a handle), whose cluster is shown from now on; nil: none.
function status.watch(worker)
  if monitor then check(C.flow_monitor_watch(monitor, worker)) end
end

return status
