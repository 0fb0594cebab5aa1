-- cli/bench.lua: flowlua bench: how fast the nets of flow.cli.bench_nets train and predict here; with --ops every kernel of their
-- training steps by itself, each variant beside the time that its cost predicts. Other programs on the machine show in
-- the figures. scripts/bench compares with other frameworks.

local flow = require "flow"
local native = require "flow.ffi"
local nets = require "flow.cli.bench_nets"
local steps = require "flow.train.steps"

local read_options = require "flow.cli.options"

local C, check = native.C, native.check

local USAGE = [[
Usage: flowlua bench [options]

Measures how fast nets train and predict here; with --ops, each kernel of their training steps.

  --net a,b      these nets (all)
  --seconds N    for each figure (2)
  --ops          kernel by kernel, each variant beside the time that its cost predicts
  --op NAME      this kernel]]

-- The names of nets that --net lists, all without it, in the order of the alphabet.
local function selected(text)
  local names = {}
  for name in text:gmatch("[^,]+") do
    if not nets[name] then flow.errors.raise("bench: there is no net %q%s", name, flow.errors.suggestion(name, nets)) end
    names[#names + 1] = name
  end
  if #names == 0 then
    for name in pairs(nets) do names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- Random inputs {rows, shape...} of the dtype that the model takes, words below 20000 for int32, and as many labels.
local function data_of(model, shape, classes, rows)
  local dtype = model.inputs[1].dtype
  local x = flow.random.uniform({ rows, unpack(shape) }, { maxval = dtype == "int32" and 20000 or 1, dtype = dtype, seed = 1 })
  return x, flow.random.uniform({ rows }, { maxval = classes, dtype = "int32", seed = 2 })
end

---- whole nets ----------------------------------------------------------------------------------------------------------------

-- How many of `rows` a call f() handles in a second, over at least `seconds`, and one call.
local function images_per_second(seconds, rows, f)
  f()                                              -- traces, plans and warms up
  local passes, started = 0, C.flow_clock()
  while C.flow_clock() - started < seconds or passes == 0 do
    f()
    passes = passes + 1
  end
  return passes * rows / (C.flow_clock() - started)
end

local function bench_nets(names, seconds)
  print(("%-12s %6s %16s %16s"):format("net", "batch", "training img/s", "prediction img/s"))
  for _, name in ipairs(names) do
    local model, shape, classes, batch = nets[name]()
    local rows = 8 * batch
    local x, y = data_of(model, shape, classes, rows)
    local training = images_per_second(seconds, rows, function() model:fit(x, y, { batch_size = batch, shuffle = false, verbose = 0 }) end)
    local prediction = images_per_second(seconds, rows, function() model:predict(x, { batch_size = batch, verbose = 0 }) end)
    print(("%-12s %6d %16.0f %16.0f"):format(name, batch, training, prediction))
  end
end

---- single kernels -------------------------------------------------------------------------------------------------------------

local measurement = native.array("flow_measurement", 1)

-- The plan of a net's training step, bound to memory (flow_instance): its entries are the kernels that a step runs. It keeps what it needs,
-- also when the model is collected.
local function instance_of(name)
  local model, shape, classes, batch = nets[name]()
  local x, y = data_of(model, shape, classes, batch)
  return steps.get(model, "train", { x, y }, { x = 1, y = 1, weights = 0 }, batch).instance
end

-- Prints every variant of an entry; `seen` holds what was printed before: op, shape and variant. The engine says that there is no further
-- variant by a name that is NULL. filter: the only op to print, or "". peak: multiply-adds a second of one thread, by which costs become
-- times.
local function bench_entry(instance, entry, filter, peak, seen)
  local variant = 0
  while true do
    check(C.flow_instance_measure(instance, entry, variant, measurement))
    local m = measurement[0]
    if m.variant == nil then return end
    local op, shape = native.string(m.op), native.string(m.shape)
    local key = op .. shape .. variant
    if seen[key] or (filter ~= "" and op ~= filter) then return end
    seen[key] = true
    if m.supported ~= 0 then
      local share = m.multiply_adds > 0 and ("%5.0f %%"):format(100 * m.multiply_adds / peak / m.seconds)
        or ("%5.1f GB/s"):format(m.bytes / m.seconds * 1e-9)
      print(("%-24s %s%-12s %12s %12.1f %12s  %s"):format(op, m.chosen ~= 0 and "*" or " ", native.string(m.variant),
        m.cost > 0 and ("%.1f"):format(1e6 * m.cost / peak) or "-", 1e6 * m.seconds, share, shape))
    end
    variant = variant + 1
  end
end

local function bench_ops(names, filter)
  if filter ~= "" and C.flow_op_find(filter) < 0 then
    local ops = {}
    for op = 0, C.flow_op_count() - 1 do ops[native.string(C.flow_op_name(op))] = true end
    flow.errors.raise("bench: --op: there is no op %q%s", filter, flow.errors.suggestion(filter, ops))
  end
  local peak = C.flow_peak()
  print(("one thread, %s, peak %.1f GFLOP/s; * is the variant that the engine chooses"):format(flow.isa(), 2e-9 * peak))
  print(("%-24s %-13s %12s %12s %12s  %s"):format("op", "variant", "predicted us", "measured us", "of the peak",
    "shapes of the first operands"))
  local seen = {}
  for _, name in ipairs(names) do
    print(("-- %s"):format(name))
    local instance = instance_of(name)
    for entry = 0, C.flow_instance_entry_count(instance) - 1 do bench_entry(instance, entry, filter, peak, seen) end
  end
  if next(seen) == nil then flow.errors.raise("bench: --op %s: no training step of %s has it", filter, table.concat(names, ", ")) end
end

return function(_, arguments)
  local options = read_options("bench", USAGE, { ops = false, net = "", op = "", seconds = 2 }, arguments)
  if options[1] then flow.errors.raise("bench: unexpected argument %q; a net is chosen by --net %s", options[1], options[1]) end
  local names = selected(options.net)
  if options.ops then bench_ops(names, options.op) else bench_nets(names, options.seconds) end
  return 0
end
