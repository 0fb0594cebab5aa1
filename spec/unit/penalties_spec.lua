-- penalties_spec.lua: what layers written in Lua add to the loss, and what a compiled model tells of its losses and metrics.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

local Energy = layers.Layer:extend("Energy")
function Energy:call(x)
  self:add_loss(x:square():mean() * 0.1)
  return x
end

local Scale = layers.Layer:extend("Scale")
function Scale:build(shape)
  self.gain = self:add_weight { name = "gain", shape = { shape[#shape] }, initializer = "ones", regularizer = self.how }
end
function Scale:call(x) return x * self.gain end

local x, y = flow.random.normal({ 12, 4 }, { seed = 1 }), flow.random.normal({ 12, 1 }, { seed = 2 })
local quiet = { verbose = 0 }

local function new_model(how)
  flow.set_random_seed(1)
  local energy, input = Energy(), flow.Input { 4 }
  local out = layers.Dense(1)(Scale { how = how or flow.regularizers.L2(0.5) }(energy(energy(input))))
  local model = flow.Model { inputs = input, outputs = out }
  model:compile { optimizer = "sgd", loss = "mse", metrics = { "mae" } }
  return model
end

describe("losses that layers add", function()
  it("are one for each regularizer, in the order of the variables, as in Keras", function()
    local dense = layers.Dense(3, { kernel_regularizer = "l2", bias_regularizer = "l1", bias_initializer = "ones" })
    local model = flow.Sequential { layers.Input { 4 }, dense, layers.Dense(2, { kernel_regularizer = flow.regularizers.L1(0.5) }) }
    assert.equal(3, #model.losses)
    assert.near(0.01 * dense.kernel:value():square():sum():item(), model.losses[1]:item(), 1e-6)
    assert.near(0.01 * 3, model.losses[2]:item(), 1e-7)
    assert.near(0.5 * model.layers[2].kernel:value():abs():sum():item(), model.losses[3]:item(), 1e-6)
    dense.trainable = false
    assert.equal(1, #model.losses)
  end)

  it("are those of the newest call and of the weights that are trained", function()
    local model = new_model()
    local energy = x:square():mean():item() * 0.1
    for _ = 1, 2 do
      local p = model(x)
      local values = {}
      for i, value in ipairs(model.losses) do values[i] = value:item() end
      table.sort(values)
      assert.equal(3, #values)
      assert.near(energy, values[1], 1e-6)
      assert.near(energy, values[2], 1e-6)
      assert.equal(2, values[3])
      assert.near((p - y):square():mean():item() + 2 * energy + 2, model:evaluate(x, y, quiet).loss, 1e-5)
    end
    model:get_layer("scale").trainable = false
    assert.equal(2, #model.losses)
    flow.clear_session()
    model = new_model()
    model:evaluate(x, y, quiet)
    assert.equal(1, #model.losses)      -- what the trace added has no value
    model:get_layer("scale").trainable = false
    assert.equal(0, #model.losses)
  end)

  it("leave out the second table of a ReversibleEmbedding, which no constraint changes, as in Keras", function()
    local layer = layers.ReversibleEmbedding(3, 2, { tie_weights = false, embeddings_initializer = flow.initializers.Constant(-2),
      embeddings_regularizer = flow.regularizers.L2(0.5), embeddings_constraint = "non_neg" })
    layer(flow.tensor({ { 0, 2 } }, { dtype = "int32" }))
    assert.equal(1, #layer.losses)
    assert.near(0.5 * 6 * 4, layer.losses[1]:item(), 1e-5)
    local table_there, table_back = unpack(layer.trainable_variables)
    flow.optimizers.SGD(1):apply_gradients({ flow.zeros { 3, 2 }, flow.zeros { 2, 3 } }, { table_there, table_back })
    assert.same({ { 0, 0 }, { 0, 0 }, { 0, 0 } }, table_there:value():abs():totable())
    assert.same({ { -2, -2, -2 }, { -2, -2, -2 } }, table_back:value():totable())
  end)

  it("train, alone and on replicas alike", function()
    local function run(scope)
      flow.clear_session()
      local model
      scope(function() model = new_model() end)
      return model:fit(x, y, { batch_size = 5, epochs = 3, shuffle = false, verbose = 0 }).history.loss, model:get_weights()[1]:totable()
    end
    local losses, gain = run(function(f) f() end)
    for i = 1, 4 do assert.truthy(gain[i] < 0.96) end      -- the regularizer pulls
    flow.config.set_logical_devices("cpu", 2)
    local together, same = run(flow.distribute.MirroredStrategy().scope)
    for i, loss in ipairs(losses) do assert.near(loss, together[i], 1e-5) end
    for i = 1, 4 do assert.near(gain[i], same[i], 1e-5) end
  end)

  it("take regularizers of every kind, and name what is not one", function()
    for _, case in ipairs { { "l1", 0.04 }, { flow.regularizers.L1L2 { l1 = 0.5, l2 = 0.25 }, 3 }, { "L2", 0.04 },
                            { function(w) return w:sum() * 7 end, 28 } } do
      flow.clear_session()
      assert.near(case[2], new_model(case[1]).losses[1]:item(), 1e-6)
    end
    assert.truthy(message_of(new_model, "l3"):find('regularizer is one such as flow.regularizers.L2(1e-4), "l2" or a function', 1, true))
    local Bad = layers.Layer:extend("Bad")
    function Bad:call(v)
      self:add_loss(v)
      return v
    end
    assert.truthy(message_of(function() Bad()(x) end):find("add_loss takes a tensor with one number", 1, true))
  end)
end)

describe("a compiled model", function()
  it("tells its loss and metrics, and resets them", function()
    local model = new_model()
    model:test_on_batch(x, y)
    assert.equal("mse", model.loss)
    assert.same({ "loss", "mae" }, { model.metrics[1].name, model.metrics[2].name })
    assert.truthy(model.metrics[2]:result() > 0)
    model:reset_metrics()
    assert.equal(0, model.metrics[2]:result())
  end)
end)

describe("flow.full", function()
  it("takes a number that is a tensor, also one of a replica", function()
    assert.same({ 3, 3 }, flow.full({ 2 }, flow.tensor(3)):totable())
    assert.equal("int32", flow.full({ 2 }, flow.tensor(3), { dtype = "int32" }).dtype)
    flow.config.set_logical_devices("cpu", 2)
    local strategy = flow.distribute.MirroredStrategy()
    local function mine() return flow.full({ 2 }, flow.distribute.get_replica_context().replica_id_in_sync_group) end
    local all = strategy:gather(strategy:run(mine))
    assert.same({ 0, 0, 1, 1 }, all:totable())
  end)
end)
