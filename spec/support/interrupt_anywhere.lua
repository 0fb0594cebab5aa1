-- interrupt_anywhere.lua: what interrupt_anywhere_spec.lua runs: a piece of a program is interrupted as plain luajit does it at Ctrl-C, by
-- an error between two instructions, once at each of many places; then everything must work as if nothing had been.
--
--   luajit spec/support/interrupt_anywhere.lua CASE PLACES
local flow = require "flow"
local native = require "flow.ffi"
local placement = require "flow.tensor.placement"
local layers = flow.layers
jit.off()

local wanted, places = arg[1], tonumber(arg[2])
local C, context = native.C, native.context
local x, y = flow.random.normal({ 12, 4 }, { seed = 1 }), flow.random.normal({ 12, 1 }, { seed = 2 })
local cases = {}

local function new_model()
  local model = flow.Sequential { layers.Input { 4 }, layers.Dropout(0.5), layers.BatchNormalization(), layers.Dense(1) }
  model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
  return model
end

function cases.fit()
  new_model():fit(x, y, { epochs = 2, batch_size = 5, verbose = 0, validation_split = 0.25 })
end

function cases.strategy()
  local strategy = flow.distribute.OneDeviceStrategy "cpu"
  strategy.scope(function() return new_model() end)
  local w = flow.Variable { 1, 2, 3, 4 }
  local step = flow.fn(function(rows) w:assign_sub((rows * w):mean(1) * 0.1) return rows:sum() end)
  for rows in strategy:experimental_distribute_dataset(flow.data.Dataset.from_tensor_slices(x):batch(5)):iter() do
    strategy:reduce("sum", strategy:run(step, { rows }))
  end
end

cases["custom loop"] = function()
  local model, optimizer = new_model(), flow.optimizers.Adam()
  for rows in flow.data.Dataset.from_tensor_slices(x):map(function(row) return row * 2 end):batch(4):iter() do
    local tape = flow.GradientTape()
    local loss = tape:record(function() return model(rows, { training = true }):square():mean() end)
    optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
  end
end

---- what has to be as before ------------------------------------------------------------------------------------------------

local model = new_model()
model:fit(x, y, { epochs = 1, verbose = 0 })
local expected = model:predict(x, { verbose = 0 }):totable()
local function expect(condition, what) if not condition then error(what, 0) end end

local function check()
  expect(C.flow_trace_depth(context) == 0, "a trace is open")
  expect(C.flow_tape_depth(context) == 0, "a tape records")
  expect(placement.current() == nil, "a strategy's scope is open")
  expect(C.flow_context_device(context) == -1, "a device is entered")
  expect(not debug.getregistry()["flowlua.defer_interrupts"], "interrupts are deferred")
  local dropout = layers.Dropout(0.5)
  expect(dropout(flow.ones { 50 }):sum():item() == 50, "layers train that are not told to")
  expect(flow.tensor { 1, 2 }:sum():item() == 3, "sums are wrong")
  local again = model:predict(x, { verbose = 0 }):totable()
  for i = 1, #again do expect(again[i][1] == expected[i][1], "a model predicts something else") end
end

---- interrupting ------------------------------------------------------------------------------------------------------------------

-- Runs f, which an error ends after `count` instructions; returns whether it had ended before.
local function interrupted(f, count)
  local function stop()
    debug.sethook()
    error("interrupted!", 0)
  end
  local ok, problem = pcall(function()
    debug.sethook(stop, "", count)
    f()
    debug.sethook()
  end)
  if not ok and not tostring(problem):find("interrupted!", 1, true) then error(("%s (instruction %d)"):format(problem, count), 0) end
  return ok
end

local f, most = cases[wanted], 1
f()
while not interrupted(f, most) do most = most * 2 end
local instructions, low = most, most / 2
while instructions - low > low / 100 do
  local middle = math.floor((low + instructions) / 2)
  if interrupted(f, middle) then instructions = middle else low = middle end
end

local found = {}
for i = 1, places do
  local at = math.max(1, math.floor(instructions * (i - 0.5) / places))
  interrupted(f, at)
  local ok, problem = pcall(check)
  if not ok then
    found[problem] = (found[problem] or 0) + 1
    if found[problem] == 1 then print(("after instruction %d of %d: %s"):format(at, instructions, problem)) end
  end
end
print(next(found) and "broken" or "whole", places, instructions)
