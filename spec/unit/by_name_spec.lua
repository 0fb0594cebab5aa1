-- by_name_spec.lua: every parameter may be given by its name, whatever kind of function takes it.
local support = require "spec.support.init"
local flow = require "flow"
local signature = require "flow.signature"
local all = require "spec.support.public"

local a, b = flow.tensor { { 1, 2 }, { 3, 4 } }, flow.tensor { { 5, 6 }, { 7, 8 } }
local labels = flow.tensor({ 0, 2 }, { dtype = "int32" })
local variable = flow.Variable { 1, 2 }

-- What a call by position and one by names give, which must be the same.
local PAIRS = {
  { function() return flow.relu6(a) end, function() return flow.relu6 { x = a } end },
  { function() return flow.maximum(a, 2) end, function() return flow.maximum { a = a, b = 2 } end },
  { function() return flow.maximum(a, 2) end, function() return flow.maximum(a, { b = 2 }) end },
  { function() return a:maximum(2) end, function() return a:maximum { b = 2 } end },
  { function() return flow.where(a:gt(2), a, b) end, function() return flow.where { condition = a:gt(2), a = a, b = b } end },
  { function() return flow.clip(a, 2, 3) end, function() return flow.clip(a, { low = 2, high = 3 }) end },
  { function() return a:clip(2, 3) end, function() return a:clip { low = 2, high = 3 } end },
  { function() return a:reshape(4) end, function() return a:reshape { shape = { 4 } } end },
  { function() return flow.reshape(a, 4) end, function() return flow.reshape { x = a, shape = { 4 } } end },
  { function() return a:permute(2, 1) end, function() return a:permute { axes = { 2, 1 } } end },
  { function() return a:sum(1, true) end, function() return a:sum { axis = 1, keepdims = true } end },
  { function() return flow.softmax(a, 1) end, function() return flow.softmax { x = a, axis = 1 } end },
  { function() return flow.matmul(a, b, { transpose_a = true }) end,
    function() return flow.matmul { a = a, b = b, transpose_a = true } end },
  { function() return flow.one_hot(labels, 3) end, function() return flow.one_hot { labels = labels, num_classes = 3 } end },
  { function() return flow.concat({ a, b }, 2) end, function() return flow.concat { values = { a, b }, axis = 2 } end },
  { function() return flow.einsum("ij,jk->ik", a, b) end,
    function() return flow.einsum { equation = "ij,jk->ik", operands = { a, b } } end },
  { function() return a:to("int32") end, function() return a:to { target = "int32" } end },
  { function() return variable:assign { 3, 4 } end, function() return variable:assign { value = { 3, 4 } } end },
  { function() return flow.losses.mean_squared_error(a, b) end,
    function() return flow.losses.mean_squared_error { y_true = a, y_pred = b } end },
  { function() return flow.losses.Huber()(a, b) end, function() return flow.losses.Huber() { y_true = a, y_pred = b } end },
  { function() return flow.layers.Dense(3, "relu"):get_config().units end,
    function() return flow.layers.Dense({ 3, activation = "relu" }):get_config().units end },
  { function() return flow.layers.Dense(3):get_config().units end, function() return flow.layers.Dense({ 3 }):get_config().units end },
  { function() return flow.optimizers.SGD(0.5, 0.9):get_config().momentum end,
    function() return flow.optimizers.SGD({ 0.5, momentum = 0.9 }):get_config().momentum end },
  { function() return flow.layers.Dense(3, { units = 4 }) end, function() return flow.layers.Dense { 3, units = 4 } end, fails = true },
  { function() return flow.image.load("lua/examples/digits", 1) end, function() return flow.image.load { path = "lua/examples/digits" } end,
    fails = true },
}

describe("a parameter given by its name", function()
  for i, pair in ipairs(PAIRS) do
    it("is the same as by position: pair " .. i, function()
      local ok, by_position = pcall(pair[1])
      local ok_named, by_name = pcall(pair[2])
      assert.equal(not pair.fails, ok, tostring(by_position))
      assert.equal(not pair.fails, ok_named, tostring(by_name))
      if ok then assert.equal(tostring(by_position), tostring(by_name)) end
    end)
  end

  it("reaches functions and methods of Lua with few parameters, too", function()
    local model = flow.Sequential({ flow.layers.Input { 2 }, flow.layers.Dense(1, { kernel_initializer = "ones" }) }, { name = "named" })
    local dense = model.layers[1].name
    assert.equal(model.layers[1], model:get_layer { name = dense })
    assert.same({ 2, 1 }, model:get_weights()[1].shape)
    assert.equal(tostring(model(a)), tostring(model(a)))
    assert.equal(2, flow.data.Dataset.range(9):take { count = 2 }:len())
    assert.equal(5, flow.data.Dataset.range { start = 0, stop = 5 }:len())
    assert.equal("x/y", flow.io.join("x", "y"))
    assert.is_true(flow.is_tensor { value = a })
  end)

  it("is not confused with a table that is a value", function()
    local callback = flow.callbacks.History()
    callback:on_train_begin()
    callback:on_epoch_end(0, { loss = 1 })
    assert.same({ 1 }, callback.history.loss)
  end)

  it("reaches call() of a layer's own class, also where all that it is called with has names", function()
    local layers = flow.layers
    local Endpoint = layers.Layer:extend "EndpointByName"
    function Endpoint:call(logits, targets, factor)
      if targets ~= nil then self:add_loss(((logits - targets) ^ 2):sum()) end
      return logits * (factor or 1)
    end
    local layer = Endpoint()
    assert.same((a * 3):totable(), layer({ logits = a, targets = b, factor = 3 }):totable())
    assert.equal(64, layer.losses[1]:item())
    assert.same(a:totable(), layer({ logits = a, training = false }):totable())
    local x, y = flow.Input { 2 }, flow.Input { 2 }
    local model = flow.Model({ x, y }, layer { targets = y, logits = x })
    assert.same(a:totable(), model({ a, b }):totable())
    local Twice = layers.Layer:extend "TwiceByName"      -- of one parameter
    function Twice:call(images) return images * 2 end
    assert.same((a * 2):totable(), Twice()({ images = a }):totable())
    local twice = flow.Model(x, Twice()({ images = x }))
    assert.same((a * 2):totable(), twice(a):totable())
    local Sum = layers.Layer:extend "SumByName"      -- the table is the input where it has other names
    function Sum:call(left, training) return training == "none" and left or left.left + (left.right or 0) end
    assert.same((a + b):totable(), Sum()({ left = a, right = b }):totable())
    local Data = flow.Model:extend "DataByName"      -- and of a model, whose data may have one of that name alone
    function Data:call(left) return left.left * 2 end
    assert.same((a * 2):totable(), Data()({ left = a }):totable())
  end)

  it("that Keras gives it is the name of a model's file", function()
    local base, model = support.path(), flow.Sequential { flow.Input { 2 }, flow.layers.Dense(1) }
    model:save { filepath = base .. ".keras" }
    model:save_weights { filepath = base .. ".weights.h5", overwrite = false }
    model:load_weights { filepath = base .. ".weights.h5", skip_mismatch = true }
    model:export { filepath = base .. ".onnx" }
    assert.truthy(flow.io.exists(base .. ".onnx"))
    assert.same(model(a):totable(), flow.load_model { filepath = base .. ".keras" }(a):totable())
  end)

  it("is that of TensorFlow for the functions that data sets take", function()
    local ds = flow.data.Dataset.range(6):filter { predicate = function(x) return x:gt(3) end }
    local function add(sum, x) return sum + x end
    assert.equal(9, ds:reduce({ initial_state = flow.tensor(0, { dtype = "int64" }), reduce_func = add }):item())
    assert.equal(2, ds:reduce({ n = 0 }, function(state) return { n = state.n + 1 } end).n)
    assert.equal(4, ds:flat_map({ map_func = function() return flow.data.Dataset.range(2) end }):reduce(0, function(n) return n + 1 end))
  end)

  it("is known for every public function that has parameters", function()
    local without = {}
    for _, entry in ipairs(all) do
      local record = signature.of(entry.f)
      for _, parameter in ipairs(record and record.positional or {}) do
        if not parameter.name:find("^[%a_][%w_]*$") then without[#without + 1] = entry.name .. ": " .. parameter.name end
      end
    end
    assert.equal("", table.concat(without, "\n"))
  end)
end)
