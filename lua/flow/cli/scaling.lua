-- cli/scaling.lua: flowlua scaling m.keras: what training a model with many workers can be expected to reach (distribute/cost.lua), from a
-- step and sums that are timed on this machine, or from what the command line says of another one.

local flow = require "flow"
local json = require "flow.json"
local shell = require "flow.shell"

local USAGE = [=[
Usage: flowlua scaling [options] model.keras

Prints how long a step of many workers takes, and how much of it is computing, by a model of what they send: as a ring, by recursive
halving, and with the workers of each host first. What is not given is measured with two workers on this machine, which add up over TCP.

  --workers A,B,...        numbers of workers (8,16,...,4096)
  --batch N                samples of a worker and step (32)
  --step-time MS           of one worker alone
  --latency US             of a message
  --bandwidth MB           a second, of one worker, each way
  --overlap PART           how fast sums are beside computing, 0 to 1
  --workers-per-host N     (8)
  --host-bandwidth MB      between workers of a host (10000)
  --threads T              of a worker (half of the cores)
  --seconds S              for each measurement (2)
  --help                   this text]=]

-- Those without a default are texts, empty where they are not given: figure() reads them.
local DEFAULTS = { workers = "", batch = 32, step_time = "", latency = "", bandwidth = "", overlap = "", workers_per_host = 8,
                   host_bandwidth = 10000, threads = 0, seconds = 2, help = false }

-- The number of an option without a default, in units; nil: not given, to be measured.
local function figure(options, name, unit, most)
  local text = options[name]
  if text == "" then return nil end
  local value = tonumber(text)
  if not value or not (most and value >= 0 or value > 0) or value > (most or math.huge) or value == math.huge then
    local range = most and ("from 0 to %g"):format(most) or "above 0"
    flow.errors.raise("scaling: --%s is a number %s, got %s", (name:gsub("_", "-")), range, text)
  end
  return value * unit
end

-- What scaling_worker.lua prints, run by this number of workers of flowlua launch: { step = seconds, sums = { { bytes, seconds }, ... } or
-- nil }. Without shared memory, since workers of different machines have none. Raises with all that they said when they fail.
local function measure(host, options, path, workers)
  local threads = options.threads > 0 and options.threads or math.max(1, math.floor(flow.config.get_threads() / 2))
  local command = ("FLOW_SHARED_MEMORY=0 FLOW_STATUS_PORT= %s launch --workers %d --threads %d -m flow.cli.scaling_worker -- --model %s "
    .. "--batch %d --seconds %.9g 2>&1"):format(shell.quote(host.program()), workers, threads, shell.quote(path), options.batch,
    options.seconds)
  local pipe = io.popen(command)
  local text = pipe:read("*a")
  pipe:close()
  local found = text:match("scaling: (%b{})")
  return found and json.decode(found) or flow.errors.raise("scaling: the workers could not be timed:\n%s", text)
end

-- The entries of "8,16"; what is not a number stays a text, which flow.distribute.cost refuses. nil for "".
local function numbers(text)
  if text == "" then return nil end
  local list = {}
  for part in text:gmatch("[^,%s]+") do list[#list + 1] = tonumber(part) or part end
  return list
end

return function(host, arguments)
  local options = require "flow.cli.options"("scaling", USAGE, DEFAULTS, arguments)
  local path = options[1]
  if not path then flow.errors.raise("scaling: which model? flowlua scaling m.keras") end
  if options[2] then flow.errors.raise("scaling: one model at a time, got %s and %s", path, options[2]) end
  local step, overlap = figure(options, "step_time", 1e-3), figure(options, "overlap", 1, 1)
  local latency, bandwidth = figure(options, "latency", 1e-6), figure(options, "bandwidth", 1e6)
  local model = flow.load_model(path)
  step = step or measure(host, options, path, 1).step
  local pair = not (latency and bandwidth and overlap) and measure(host, options, path, 2) or {}
  local result = flow.distribute.cost { model = model, step_seconds = step, latency = latency, bandwidth = bandwidth,
    overlap = overlap, sums = pair.sums, pair_seconds = pair.step,
    workers = numbers(options.workers), workers_per_host = options.workers_per_host, host_bandwidth = options.host_bandwidth * 1e6 }
  local measured = pair.step and ("two workers here take %.4g ms a step, one %.4g"):format(1e3 * pair.step, 1e3 * step) or "as given"
  print(("a message: %.3g us and %.4g MB/s; sums beside computing: %.0f %% of their speed (%s)"):format(1e6 * result.latency,
    result.bandwidth / 1e6, 100 * result.overlap, measured))
  print(result)
  return 0
end
