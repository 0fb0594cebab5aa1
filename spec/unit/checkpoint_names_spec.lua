-- checkpoint_names_spec.lua: what a checkpoint holds under several names is found under each, as in TensorFlow's guide to checkpoints.
local support = require "spec.support.init"
local flow = require "flow"
local layers, Checkpoint = flow.layers, flow.train.Checkpoint

describe("a checkpoint", function()
  it("gives a variable by any of its names", function()
    local save = Checkpoint()
    save.listed = { flow.Variable(1), flow.Variable(2) }
    save.mapped = { one = save.listed[1], two = save.listed[2] }
    local path = save:save(support.path())
    for _, name in ipairs { "listed", "mapped" } do
      local value = flow.Variable(0)
      local restore = Checkpoint { [name] = { [name == "mapped" and "two" or 2] = value } }
      restore:restore(path):expect_partial()
      assert.equal(2, value:value():item())
    end
  end)

  -- A model of two others, of which each is saved beside it.
  local function autoencoder()
    local encoder = flow.Sequential { layers.Input { 2 }, layers.Dense(3) }
    local decoder = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
    local x = flow.Input { 2 }
    local model = flow.Model(x, decoder(encoder(x)))
    model:compile { optimizer = "adam", loss = "mse" }
    return model, encoder, decoder
  end

  it("of a model beside its parts gives each alone, with all slots of the optimizer", function()
    local x = flow.random.normal({ 4, 2 }, { seed = 1 })
    local model, encoder, decoder = autoencoder()
    model:fit(x, x, { verbose = 0 })
    local path = Checkpoint { encoder = encoder, model = model, decoder = decoder, optimizer = model.optimizer }:save(support.path())
    local again = autoencoder()
    Checkpoint { model = again }:restore(path):assert_consumed()
    assert.same(model(x):totable(), again(x):totable())
    assert.equal(10, #again.optimizer.variables)
    local _, _, alone = autoencoder()
    Checkpoint { decoder = alone }:restore(path):expect_partial()
    assert.same(decoder:get_weights()[1]:totable(), alone:get_weights()[1]:totable())
  end)

  it("gives layers that are called later by another of their names, too", function()
    local Net = flow.Model:extend "Net"
    function Net:init() self.hidden = layers.Dense(3) end
    function Net:call(x) return self.hidden(x) end
    local net, x = Net(), flow.ones { 1, 2 }
    net(x)
    local path = Checkpoint { hidden = net.hidden, net = net }:save(support.path())
    local later = Net()
    local status = Checkpoint { net = later }:restore(path)
    assert.same(net(x):totable(), later(x):totable())
    status:assert_consumed()
  end)

  it("gives parts of a model by the names of its fields, into checkpoints of checkpoints", function()
    local Net = flow.Model:extend "Net"
    function Net:init() self.first, self.blocks = layers.Dense(2, { bias_initializer = "ones" }), {} end
    function Net:call(x) return self.first(x) end
    local net = Net()
    net(flow.ones { 1, 2 })
    local path = Checkpoint { net = net }:save(support.path())
    local bias = flow.Variable { 0, 0 }
    local root = Checkpoint { net = Checkpoint { first = Checkpoint { bias = bias } } }
    root:restore(path):assert_existing_objects_matched():expect_partial()      -- inner ones need no count of saves
    assert.same({ 1, 1 }, bias:value():totable())
  end)

  it("may hold tables that contain themselves", function()
    local held = { value = flow.Variable(3) }
    held.own = held
    local path = Checkpoint { held = held }:save(support.path())
    local value, other = flow.Variable(0), flow.Variable(5)
    Checkpoint { held = { own = { own = { value = value } }, more = { value = other } } }:restore(path):expect_partial()
    assert.same({ 3, 5 }, { value:value():item(), other:value():item() })
  end)

  it("waits for what checkpoints inside of it get after the restore, at any depth", function()
    local function compiled()
      local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
      model:compile { optimizer = "adam", loss = "mse" }
      return model
    end
    local model = compiled()
    model:fit(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0 })
    local inside = Checkpoint { v = flow.Variable { 1, 2 }, model = model, deep = Checkpoint { w = flow.Variable(7) } }
    local path = Checkpoint { inner = inside, u = flow.Variable(3) }:write(support.path())
    local root = Checkpoint { inner = Checkpoint { deep = Checkpoint() } }
    local status = root:restore(path)
    root.inner.v, root.inner.deep.w, root.u, root.inner.model = flow.Variable { 0, 0 }, flow.Variable(0), flow.Variable(0), compiled()
    assert.same({ { 1, 2 }, 7, 3 }, { root.inner.v:value():totable(), root.inner.deep.w:item(), root.u:item() })
    assert.equal(1, root.inner.model.optimizer.iterations)
    assert.same(model:get_weights()[1]:totable(), root.inner.model:get_weights()[1]:totable())
    status:assert_consumed()

    local late = Checkpoint()      -- the inner ones come after the restore, too
    late:restore(path):expect_partial()
    late.inner = Checkpoint()
    late.inner.deep = Checkpoint()
    late.inner.deep.w = flow.Variable(0)
    assert.equal(7, late.inner.deep.w:item())
  end)
end)
