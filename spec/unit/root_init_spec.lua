-- root_init_spec.lua: a script's init calls that of the library's class, as Keras' scripts call super().__init__(name = ...).
local flow = require "flow"
local support = require "spec.support.init"
local layers, message_of = flow.layers, support.message_of

-- A class of each kind that scripts extend, whose init calls the library's, and one that extends that.
local ROOTS = {
  Layer = layers.Layer, Model = flow.Model, Metric = flow.metrics.Metric, Loss = flow.losses.Loss, Callback = flow.callbacks.Callback,
  Initializer = flow.initializers.Initializer, Regularizer = flow.regularizers.Regularizer, Constraint = flow.constraints.Constraint,
  Optimizer = flow.optimizers.Optimizer, LearningRateSchedule = flow.optimizers.schedules.LearningRateSchedule,
  PyDataset = flow.utils.PyDataset,
}

describe("the init of a class of the library", function()
  for kind, root in pairs(ROOTS) do
    it(kind .. " is called by that of a script's class, with and without options", function()
      local Own = root:extend("Own" .. kind)
      function Own:init(size, options)
        root.init(self)
        root.init(self, kind ~= "Callback" and options or nil)
        self.size = size
      end
      local More = Own:extend("More" .. kind)
      function More:init(size) Own.init(self, size + 1, { name = "inner" }) end
      assert.equal(3, Own(3).size)
      assert.equal(4, Own(4, { name = "mine" }).size)
      local more = More(5)
      assert.equal(6, more.size)
      if kind == "Layer" or kind == "Model" or kind == "Metric" or kind == "Loss" then assert.equal("inner", more.name) end
    end)

    it(kind .. " leaves classes without init unchanged: options become fields", function()
      local Own = root:extend("Plain" .. kind)
      if kind ~= "Model" then assert.equal(7, Own({ size = 7 }).size) end
    end)
  end

  it("sets the options of every layer", function()
    local Half = layers.Layer:extend "Half"
    function Half:init(options)
      layers.Layer.init(self, { trainable = false, dtype = "mixed_bfloat16" })
      layers.Layer.init(self, options)
      self.dense = layers.Dense(2)
    end
    function Half:call(x) return self.dense(x) end
    local layer = Half { name = "half" }
    assert.equal("half", layer.name)
    assert.is_false(layer.trainable)
    assert.equal("bfloat16", layer.compute_dtype)
    layer(flow.ones { 1, 2 })
    assert.equal(0, #layer.trainable_weights)
  end)

  it("says what it takes", function()
    local Odd = layers.Layer:extend "Odd"
    function Odd:init(name) layers.Layer.init(self, name) end
    assert.truthy(message_of(function() Odd("x") end):find("Layer.init takes the object and a table of options", 1, true))
    local Named = layers.Layer:extend "Named"
    function Named:init() layers.Layer.init(self, { name = 3 }) end
    assert.truthy(message_of(function() Named() end):find("Named: name is a string, got the number 3", 1, true))
  end)

  -- As Python's TypeError: Lua drops what a function has no parameter for.
  it("takes no option and no argument that it does not name", function()
    for name, base in pairs { layer = flow.layers.Layer, loss = flow.losses.Loss, metric = flow.metrics.Metric,
                              callback = flow.callbacks.Callback, optimizer = flow.optimizers.Optimizer, model = flow.Model,
                              stock = flow.callbacks.EarlyStopping, dense = flow.layers.Dense,
                              schedule = flow.optimizers.schedules.LearningRateSchedule } do
      local Own = base:extend "Own"
      function Own:init(first) base.init(self, name == "dense" and 2 or nil) self.first = first end
      local function refused(...)
        local given, count = { ... }, select("#", ...)
        local message = support.message_of(function() return (Own(unpack(given, 1, count))) end)
        return message and (message:gsub("^.-Own: ", "Own: ")) or "nothing"
      end
      assert.equal('Own: unknown option "frist"; did you mean "first"; its init takes first', refused(1, { frist = 2 }), name)
      assert.equal("Own: its init takes 1 argument; the number 2 is one too many", refused(1, 2), name)
      function Own:init() base.init(self, name == "dense" and 2 or nil) end
      assert.equal('Own: unknown option "units"; its init takes no arguments', refused { units = 2 }, name)
      function Own:init(...) base.init(self, name == "dense" and 2 or nil) self.count = select("#", ...) end
      assert.equal(2, Own(1, { units = 2 }).count, name)
    end
    local Scale = flow.layers.Layer:extend "Scale"
    function Scale:init(gain) self.gain = gain end
    local scale = Scale(3, { name = "third", trainable = false })
    assert.equal("third", scale.name)
    assert.equal(3, scale.gain)
    assert.is_false(scale.trainable)
  end)
end)
