-- call_order_spec.lua: layers that are called several times run in Keras' order, which their moving averages show (call_order.py): in Lua,
-- and in C after a file.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"

local layers = flow.layers
local folder = debug.getinfo(1, "S").source:match("^@(.*)call_order_spec%.lua$")

-- The model of a graph, and its three layers with averages: two, and the one of the tower.
local function model_of(inputs, calls, outputs)
  local tensors, norms, results = {}, {}, {}
  for i = 1, inputs do tensors[i] = flow.Input { 2 } end
  local given = { unpack(tensors) }
  for i = 1, 3 do norms[i] = layers.BatchNormalization { momentum = 0.5 } end
  local inner = flow.Input { 2 }
  local tower = flow.Model { inputs = inner, outputs = norms[3](inner) }
  for i = 1, 2 do norms[i]:build { -1, 2 } end
  for _, call in ipairs(calls) do
    local kind, layer, x, y = unpack(call)
    local t
    if kind == "norm" then t = norms[layer](tensors[x])
    elseif kind == "tower" then t = tower(tensors[x])
    else t = layers.Add() { tensors[x], tensors[y] } end
    tensors[#tensors + 1] = t
  end
  for i, k in ipairs(outputs) do results[i] = tensors[k] end
  return flow.Model { inputs = given, outputs = results }, norms
end

local function batch(count)
  local list = {}
  for i = 1, count do list[i] = flow.tensor { { 1, -2 }, { 3, 5 }, { -4, 0.5 } } + 7 * (i - 1) end
  return list
end

local function assert_near(expected, found, what)
  for i, x in ipairs(expected) do
    assert.is_true(math.abs(x - found[i]) < 1e-4, ("%s: %g, Keras has %g"):format(what, found[i], x))
  end
end

-- The averages, by their layers' names, after a step of training in C of the model in a file.
local function averages_in_c(path, x, y)
  local out, loss, averages = native.out "flow_model", native.array("double", 1), {}
  native.check(native.C.flow_model_load(native.context, path, out))
  local model = native.own(out, native.C.flow_model_release)
  local pointers, count = native.pointers(x)
  native.check(native.C.flow_model_train(native.context, model, pointers, count, native.pointer(y), loss))
  native.check(native.C.flow_model_save(model, path))
  native.close(model, native.C.flow_model_release)
  local function read(part)
    for _, layer in ipairs(part.layers) do
      if layer.class_name == "Functional" then read(layer) end
      if layer.class_name == "BatchNormalization" then averages[layer.name] = layer.moving_mean:totable() end
    end
  end
  read(flow.load_model(path))
  return averages
end

for number, case in ipairs(dofile(folder .. "call_order.lua")) do
  local inputs, calls, outputs, expected = unpack(case)
  it(("a graph runs its layers in Keras' order: graph %d"):format(number), function()
    local model, norms = model_of(inputs, calls, outputs)
    local x = batch(inputs)
    model(#x > 1 and x or x[1], { training = true })
    for i, norm in ipairs(norms) do assert_near(expected[i], norm.moving_mean:totable(), "average " .. i) end
    local again, others = model_of(inputs, calls, { outputs[1] })
    if #again.trainable_variables == 0 then return end
    again:compile { optimizer = flow.optimizers.SGD(0), loss = "mse" }
    local path = support.folder() .. "/model.keras"
    again:save(path)
    again:train_on_batch(#x > 1 and x or x[1], flow.zeros { 3, 2 })
    local found = averages_in_c(path, x, flow.zeros { 3, 2 })
    for i, norm in ipairs(others) do
      if found[norm.name] then assert_near(norm.moving_mean:totable(), found[norm.name], "in C: average " .. i) end
    end
  end)
end
