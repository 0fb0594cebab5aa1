-- operation_names_spec.lua: operations on symbolic tensors have Keras' names (operation_names.py), in summaries, files and get_layer.
local support = require "spec.support.init"
local flow = require "flow"
local expected = require "spec.golden.operation_names"

local layers = flow.layers

local OPERATIONS = {
  function(x) return x * 2 end, function(x) return 2 * x end, function(x) return x + 1 end, function(x) return 1 + x end,
  function(x) return x - 1 end, function(x) return x / 2 end, function(x) return x ^ 2 end, function(x) return -x end,
  function(x) return x[{ {}, 1 }] end, flow.relu, function(x) return flow.concat({ x, x }, -1) end,
  function(x) return flow.reshape(x, { -1, 12 }) end, function(x) return flow.sum(x, -1) end, function(x) return flow.mean(x, 2) end,
  function(x) return flow.max(x, 2) end, flow.softmax, flow.exp, function(x) return flow.matmul(x, flow.transpose(x, { 1, 3, 2 })) end,
  function(x) return flow.squeeze(flow.expand_dims(x, 2), 2) end, function(x) return x:to "int32" end,
  function(x) return flow.logical_not(x:gt(0)) end, function(x) return flow.where(x:gt(0), x, 0) end,
  function(x) return flow.norm(x, { axis = -1 }) end, function(x) return flow.stack { x, x } end,
  function(x) return flow.split(x, 3, -1)[1] end, function(x) return flow.maximum(x, 0) end,
  function(x) return flow.einsum("bij,bkj->bik", x, x) end, function(x) return flow.tile(x, { 1, 2, 1 }) end,
  function(x) return flow.argmax(x, -1) end, flow.silu, flow.gelu, flow.log2, function(x) return (flow.top_k(x, 2)) end,
  function(x) return layers.Multiply()({ x, x }) end, layers.ReLU(), function(x) return flow.multiply(x, x) end,
  function(x) return layers.Concatenate()({ x, x }) end,
}

describe("operations on symbolic tensors", function()
  it("are named as in Keras, in one count with layers", function()
    flow.clear_session()
    local x, found = layers.Input { 4, 3 }, {}
    for i, f in ipairs(OPERATIONS) do
      local y = f(x)
      found[i] = (y.node and y or y[1]).node.layer.name
    end
    assert.same(expected, found)
  end)

  it("keep their names in files", function()
    flow.clear_session()
    local x = flow.Input { 4 }
    local model, path = flow.Model(x, flow.relu(x * 2 + layers.Dense(4)(x)) * 3), support.path ".keras"
    local function listed(m)
      local found = {}
      m:summary { line_length = 120, print_fn = function(line)
        for name in line:gmatch "│ ([%w_]+) %(" do found[#found + 1] = name end
      end }
      return found
    end
    assert.same({ "input_layer", "multiply", "dense", "add", "relu", "multiply_1" }, listed(model))
    model:save(path)
    flow.clear_session()
    assert.same(listed(model), listed(flow.load_model(path)))
  end)
end)
