-- signature_spec.lua: what public functions take: every function and method that can be reached from flow refuses one argument too many and
-- an option that it does not know, a dot where a colon belongs, and a colon where a dot belongs.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

describe("a method", function()
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  local dataset = flow.data.Dataset.range(10)

  it("that is called with a dot says that a colon belongs there", function()
    local x = flow.zeros { 3, 2 }
    local with_a_dot = {
      [function() model.fit(x, x) end] = "fit is a method, it was called with a dot: write model:fit(...), with a colon",
      [function() model.summary() end] = "summary is a method, it was called with a dot: write model:summary(...), with a colon",
      [function() model.compile { loss = "mse" } end]
        = "compile is a method, it was called with a dot: write model:compile(...), with a colon",
      [function() model.layers[1].get_weights() end]
        = "get_weights is a method, it was called with a dot: write layer:get_weights(...), with a colon",
      [function() dataset.batch(8) end] = "batch is a method, it was called with a dot: write dataset:batch(...), with a colon",
      [function() flow.optimizers.Adam().apply_gradients({}, {}) end]
        = "apply_gradients is a method, it was called with a dot: write optimizer:apply_gradients(...), with a colon",
    }
    for f, expected in pairs(with_a_dot) do assert.equal(expected, message_of(f)) end
  end)

  it("of a class that a user extends is checked, too, and takes any number of arguments", function()
    local Mine = flow.Model:extend("Mine")
    function Mine:encode(a, b) return self.name, a, b end
    function Mine.helper(a) return a end
    local mine = Mine { name = "m" }
    assert.equal("encode is a method, it was called with a dot: write model:encode(...), with a colon",
      message_of(function() mine.encode(1) end))
    assert.same({ "m", 1, 2 }, { mine:encode(1, 2, 3) })
    assert.equal(5, Mine.helper(5))
    assert.equal(5, mine.helper(5))
  end)

  it("refuses one argument too many, and shows what it takes", function()
    assert.equal("dataset:take takes (count); the number 9 is one argument too many", message_of(function() dataset:take(8, 9) end))
    assert.equal('dataset:unbatch: unknown option "buffer"', message_of(function() dataset:unbatch { buffer = 1 } end))
    assert.equal("layer:get_weights takes no arguments; true is one argument too many",
      message_of(function() model:get_weights(true) end))
  end)
end)

describe("a class name", function()
  it("does not say how a layer behaves when it is called alone: its record does", function()
    local RandomThing = layers.Layer:extend("RandomThing")
    local seen
    function RandomThing:call(x, options)
      seen = options.training
      return x
    end
    RandomThing()(flow.zeros { 1, 2 })
    assert.is_false(seen)
    local images = flow.random.uniform({ 4, 8, 8, 3 }, { seed = 1 })
    assert.is_false((layers.RandomFlip { seed = 1 }(images) - images):abs():max():item() == 0)
  end)
end)
