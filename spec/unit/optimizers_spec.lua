-- optimizers_spec.lua: optimizer objects: options, updates, learning rate, variables. Updates against Keras are in spec/golden.
local support = require "spec.support.init"
local flow = require "flow"
local optimizers = flow.optimizers
local message_of = support.message_of

describe("an optimizer", function()
  it("takes options by position and by name, with Keras' defaults", function()
    assert.near(0.01, optimizers.SGD().learning_rate, 1e-9)
    assert.near(0.001, optimizers.Adam().learning_rate, 1e-9)
    assert.near(0.5, optimizers.SGD(0.5).learning_rate, 1e-9)
    assert.near(0.5, optimizers.Adam { learning_rate = 0.5, beta_1 = 0.8 } .learning_rate, 1e-9)
    assert.equal("adam", optimizers.Adam().name)
    assert.equal("mine", optimizers.Adam { name = "mine" } .name)
  end)

  it("updates variables, and counts and rates read as numbers", function()
    local w = flow.Variable { 1, 2 }
    local sgd = optimizers.SGD(0.5)
    assert.equal(0, sgd.iterations)
    sgd:apply_gradients({ flow.tensor { 1, 1 } }, { w })
    assert.same({ 0.5, 1.5 }, w:totable())
    assert.equal(1, sgd.iterations)
    sgd.learning_rate = 0.25
    sgd:apply_gradients { { flow.tensor { 2, 2 }, w } }      -- Keras' form: pairs
    assert.same({ 0, 1 }, w:totable())
    assert.equal(2, sgd.iterations)
    assert.equal("number", type(sgd.learning_rate))
  end)

  it("leaves out variables without a gradient", function()
    local a, b = flow.Variable(1), flow.Variable(1)
    optimizers.SGD(1):apply_gradients({ nil, flow.tensor(1) }, { a, b })
    assert.same({ 1, 0 }, { a:item(), b:item() })
  end)

  it("keeps one order of variables: iterations, learning rate, slots", function()
    local w, v = flow.Variable({ 1, 2 }, { name = "w" }), flow.Variable({ 1 }, { name = "v" })
    local adam = optimizers.Adam()
    assert.equal(2, #adam.variables)
    adam:build { w, v }
    local sizes = {}
    for i, variable in ipairs(adam.variables) do sizes[i] = variable.size end
    assert.same({ 1, 1, 2, 2, 1, 1 }, sizes)
    adam:apply_gradients({ flow.tensor { 1, 1 }, flow.tensor { 1 } }, { w, v })
    assert.equal(adam.variables[1]:item(), adam.iterations)
    assert.near(0.1, adam.variables[3]:totable()[1], 1e-6)      -- m = (1 - beta_1) g
  end)

  it("trains two models, each with its own optimizer, on shared variables", function()
    local w = flow.Variable { 1 }
    optimizers.SGD(0.5):apply_gradients({ flow.tensor { 1 } }, { w })
    optimizers.SGD(0.25):apply_gradients({ flow.tensor { 1 } }, { w })
    assert.same({ 0.25 }, w:totable())
  end)

  it("names what it was given wrongly, and works on", function()
    local w, sgd = flow.Variable { 1 }, optimizers.SGD(1)
    assert.truthy(message_of(function() optimizers.Adam { lr = 3 } end):find('Adam: unknown option "lr"', 1, true))
    assert.truthy(message_of(function() optimizers.Adam(-1) end):find("learning_rate is -1", 1, true))
    assert.truthy(message_of(function() optimizers.Adam("fast") end):find("learning_rate", 1, true))
    assert.equal('flow.optimizers has no "Adm"; did you mean "Adam"?', message_of(function() return optimizers.Adm end))
    assert.truthy(message_of(function() sgd.learning_rate = -1 end):find("a number of at least 0, got the number -1", 1, true))
    assert.truthy(message_of(function() sgd.learning_rate = 0 / 0 end):find("a number of at least 0", 1, true))
    assert.truthy(message_of(function() sgd:apply_gradients({ flow.ones { 1 } }, { 3 }) end):find("entry 1 of the variables", 1, true))
    assert.truthy(message_of(function() sgd:apply_gradients({ 3 }, { w }) end):find("expected a tensor, got the number 3", 1, true))
    assert.truthy(#message_of(function() sgd:apply_gradients({ flow.ones { 2 } }, { w }) end) > 0)
    assert.truthy(message_of(function() sgd:apply_gradients(3) end):find("a list of gradients and a list of variables", 1, true))
    assert.truthy(message_of(function() optimizers.get(3) end):find("an optimizer is an object", 1, true))
    assert.truthy(message_of(function() optimizers.get("adm") end):find('did you mean "adam"?', 1, true))
    sgd:apply_gradients({ flow.ones { 1 } }, { w })
    assert.same({ 0 }, w:totable())
    assert.equal(1, sgd.iterations)
  end)
end)
