-- placement.lua: where steps run: on how many replicas of this process, and beside which other processes.
--
--   local p = placement.new { devices = { "gpu:0", "gpu:1" }, worker = handle or nil }
--   p.replicas, p.workers, p.worker_index, p.count (all replicas of all workers), p.first (of this process among them, from 0),
--   p.device (number of the first one)
--   placement.within(p, f, ...)        a stack of the running coroutine; placement.current() is the innermost one, or nil
--
-- Everywhere below nil stands for one replica that is alone.

local native = require "flow.ffi"

local devices = require "flow.devices"
local scopes = require "flow.scopes"

local C, check = native.C, native.check
local context = native.context
local placement = {}
local made = 0

local out_group = native.out("flow_device_group")

-- The library's group of GPUs; nil: the devices are the CPU's.
local function group_of(names)
  if devices.number(names[1]) < 0 then return nil end
  local numbers = native.array("int", #names)
  for i, name in ipairs(names) do numbers[i - 1] = devices.number(name) end
  check(C.flow_device_group_new(context, numbers, #names, out_group))
  return native.own(out_group, C.flow_device_group_release)
end

-- Connects the GPUs of a placement, of all workers, so that sums go from one to the other. Returns what is in the way, if anything is.
function placement.connect(p)
  local why = native.array("char", 1024)
  check(C.flow_device_group_connect(p.group, p.worker, why, 1024))
  local text = native.string(why)
  return text ~= "" and text or nil
end

-- devices: names, all of GPUs or all of CPUs. replicas: how many they have, if not one each; first, count: which of how many they are, if
-- not all workers have as many. pairwise: the sums over them have one order (shards.lua). bucket_bytes: of gradients that are added up at
-- once, 0: as the library likes. factors: as CommunicationOptions has it; gradient_bytes: of an element of a gradient that travels.
-- workers: with how many others the process may work, if not with those that are there; then, elastic, they come and go (placement.move),
-- and there always is a worker.
-- What it has as shared are variables that all workers have equal. It keeps them: one worker's collector may take what another's does not.
function placement.new(options)
  local worker, names = options.worker, options.devices
  local workers, replicas = worker and C.flow_worker_count(worker) or 1, options.replicas or #names
  made = made + 1
  local index = worker and C.flow_worker_rank(worker) or 0
  return { replicas = replicas, workers = options.workers or workers, elastic = options.workers ~= nil,
           count = options.count or replicas * workers, first = options.first or index * replicas, worker_index = index, members = workers,
           worker = worker, id = made,
           pairwise = options.pairwise or false, bucket_bytes = options.bucket_bytes or 0,
           factors = options.factors, gradient_bytes = options.gradient_bytes or 4,
           device = devices.number(names[1]), group = group_of(names), shared = {} }
end

-- Workers have come or gone, so that there are `members`: this process has other ones of the same replicas. Instances and functions of
-- before are of no use any more.
function placement.move(p, replicas, first, worker_index, members)
  if p.replicas == replicas and p.first == first and p.worker_index == worker_index and p.members == members then return end
  made = made + 1
  p.replicas, p.first, p.worker_index, p.members, p.id = replicas, first, worker_index, members, made
end

-- The placement of the strategy by which this Lua state is one of several workers, or nil.
local joined
function placement.join(p) joined = p end
function placement.joined() return joined and not rawget(joined, "closed") and joined or nil end

-- Those that the running coroutine has entered.
local function stack_of(own)
  local stack = own.placements
  if not stack then
    stack = {}
    own.placements = stack
  end
  return stack
end

function placement.current()
  if not scopes.any_open() then return nil end
  local stack = scopes.own().placements
  return stack and stack[#stack]
end

-- Calls f(...) with p (or nil: as it is) entered.
function placement.within(p, f, ...)
  local stack = stack_of(scopes.own())
  local depth = #stack
  return native.between(function() stack[depth + 1] = p end, function()
    for i = #stack, depth + 1, -1 do stack[i] = nil end
  end, f, ...)
end

-- Tells signatures of plans apart.
function placement.text(p)
  return p and (p.count > 1 or rawget(p, "servers")) and ("placement %d"):format(p.id) or "alone"
end

-- Whether the rows of p's replicas can be put together.
local function gathers_of(p)
  if not p or p.count == 1 or p.device >= 0 or p.pairwise or rawget(p, "apart") then return C.FLOW_GATHERS_NOT end
  if p.workers == 1 then return C.FLOW_GATHERS_LOCAL end
  if p.factors == false then return C.FLOW_GATHERS_NOT end
  if C.flow_worker_shares_memory(p.worker) ~= 0 then return C.FLOW_GATHERS_WORKERS end
  return C.flow_worker_computes_alike(p.worker) ~= 0 and C.FLOW_GATHERS_MESSAGES or C.FLOW_GATHERS_NOT
end

-- For batches of `rows` rows of all replicas (nil: unknown), how many of them each is expected to have where that decides how
-- gradients travel: a power of two, so that batches of many sizes share few plans; false: it decides nothing, 0: rows are unknown.
function placement.expected_rows(p, rows)
  if gathers_of(p) ~= C.FLOW_GATHERS_MESSAGES or p.factors == true then return false end
  if not rows or rows < 1 then return 0 end
  local expected = 1
  while expected * p.count < rows do expected = 2 * expected end
  return expected
end

-- Begins a trace of what one replica of p does. divides: its runs get whole batches and divide them. expected: of expected_rows.
function placement.begin_trace(p, divides, expected)
  scopes.own().traced = p
  local gathers = divides and expected ~= 0 and gathers_of(p) or C.FLOW_GATHERS_NOT
  C.flow_context_set_replicas(context, p and p.count or 1)
  C.flow_context_set_gathers(context, gathers)
  C.flow_context_set_network(context, p and p.workers or 1, expected or 0, p and p.gradient_bytes or 4)
  C.flow_context_set_bucket_bytes(context, p and p.bucket_bytes or 0)
  local status = C.flow_trace_begin(context)
  C.flow_context_set_replicas(context, 1)
  check(status)
end

-- Of a process that has parameter servers: updates_of(name) is how often they have applied the optimizer of this name.
placement.updates_of = false

-- The store of variables of the parameter servers that the current placement, or the step that is traced, belongs to; nil: there is none.
function placement.servers()
  local own = scopes.own()
  local p = placement.current() or own.step and own.traced
  return p and rawget(p, "servers") or nil
end

-- Variables that were made in the current placement: parameter servers are to keep them.
function placement.register(list)
  local p = placement.current()
  if p and rawget(p, "servers") then p.servers:register(list) end
end

-- Gives variables that were made in the current placement the chief's values, on all workers at once: as in tf.distribute they are equal
-- from the beginning, whatever a worker drew or seeded before.
function placement.share_new(list)
  local p = placement.current()
  placement.register(list)
  if not p or p.workers == 1 or rawget(p, "closed") or #list == 0 then return end
  local lines = {}
  for i, v in ipairs(list) do lines[i] = ("variable %d: %s {%s}"):format(i, v.dtype, table.concat(v.shape, ", ")) end
  local worker = p.strategy._worker
  worker:guard(function()
    worker:agree("variables", table.concat(lines, "\n"))
    worker:share_variables(list)
  end)
end

-- Gives the variables of a plan the chief's values on all workers, as tf.distribute does when it makes them: each the first time that a
-- function of the placement uses it, so that what a worker drew or loaded by itself before does not matter.
function placement.share_variables(p, plan)
  local worker, new, lines, index = p and p.workers > 1 and p.strategy._worker, {}, {}, 0
  while worker do
    local pointer = C.flow_plan_variable(plan, index)
    if pointer == nil then break end
    local v = require("flow.tensor.variable").wrap(pointer)
    if not p.shared[v] then
      new[#new + 1], lines[#lines + 1] = v, ("variable %d: %s {%s}"):format(#new + 1, v.dtype, table.concat(v.shape, ", "))
    end
    index = index + 1
  end
  if #new == 0 then return end
  worker:agree("variables of the function", table.concat(lines, "\n"))
  for _, v in ipairs(new) do
    worker:broadcast_variable(v)
    p.shared[v] = true
  end
end

-- Spreads an instance that has not run yet over the replicas of p.
function placement.replicate(p, instance)
  if p and p.count > 1 then native.try(C.flow_instance_replicate, instance, p.replicas, p.group, p.worker) end
end

-- Runs a flow.fn on every local replica with its list of arguments (its length is n); returns for each the list of what it returned. The
-- placement is the current one.
function placement.run(p, f, arguments)
  if p.count > 1 then return require("flow.tensor.fn").call_each(f, arguments) end
  local function pack(...) return { n = select("#", ...), ... } end
  return { pack(f(unpack(arguments[1], 1, arguments[1].n))) }
end

return placement
