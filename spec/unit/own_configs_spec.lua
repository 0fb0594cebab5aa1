-- own_configs_spec.lua: files of classes written in Lua that have no get_config: what their init was given, as Keras keeps it, not what it
-- computes of that.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

-- The model of a layer of this class, read again from its file, the model itself, and the warning that saving it gave.
local function read_again(Class, ...)
  local input = flow.Input { 4 }
  local model = flow.Model(input, Class(...)(input))
  local path = support.path "own_config.keras"
  local warnings = support.warnings(function() model:save(path) end)
  return flow.load_model(path, { custom_objects = { [Class.name] = Class } }), model, warnings
end

local function expect_the_same(again, model)
  local x = flow.random.normal({ 3, 4 }, { seed = 1 })
  assert.equal(0, (again:predict(x, { verbose = 0 }) - model:predict(x, { verbose = 0 })):abs():max():item())
end

for _, kind in ipairs { "Layer", "Model" } do
  local Base = kind == "Layer" and layers.Layer or flow.Model

  describe("a " .. kind .. " of a script, read from its file", function()
    it("is made of its init's arguments, whatever other fields it has", function()
      local Half = Base:extend("Half" .. kind)
      function Half:init(units, rate)
        Base.init(self)
        self.half, self.rate = units / 2, rate and rate * 2
        self.dense = layers.Dense(units)
      end
      function Half:call(x) return self.dense(x) * (self.rate or 1) end
      expect_the_same(read_again(Half, 4))
      local again, model = read_again(Half, 4, 0.5)
      expect_the_same(again, model)
      assert.equal(1, again.layers[2].rate)
    end)

    it("is made of the options of its last parameter", function()
      local Options = Base:extend("Options" .. kind)
      function Options:init(units, options)
        Base.init(self)
        self.dense = layers.Dense(units + (options.more or 0))
      end
      function Options:call(x) return self.dense(x) end
      expect_the_same(read_again(Options, 4, { more = 3 }))
      local Only = Base:extend("Only" .. kind)
      function Only:init(given) self.dense = layers.Dense(given.units) end
      function Only:call(x) return self.dense(x) end
      expect_the_same(read_again(Only, { units = 5 }))
    end)

    it("is made of lists and tables by name", function()
      local Tables = Base:extend("Tables" .. kind)
      function Tables:init(sizes, more, scale)
        Base.init(self)
        self.dense = layers.Dense(sizes[1][2] + more.units)
        self.scale = scale
      end
      function Tables:call(x) return self.dense(x) * self.scale end
      expect_the_same(read_again(Tables, { { 1, 2 }, {} }, { units = 3, names = { "a" } }, 2))
    end)

    it("says what its file does not hold, when it is written and when it is read", function()
      local Around = Base:extend("Around" .. kind)
      function Around:init(inner, units)
        Base.init(self)
        self.inner, self.dense = inner, layers.Dense(units)
      end
      function Around:call(x) return self.dense(self.inner(x)) end
      local input = flow.Input { 4 }
      local model = flow.Model(input, Around(layers.Dense(3), 2)(input))
      local path = support.path "around.keras"
      local warnings = support.warnings(function() model:save(path) end)
      assert.truthy(warnings:find("a file does not hold what its init was given as inner, a Dense", 1, true), warnings)
      local message = support.message_of(function() flow.load_model(path, { custom_objects = { [Around.name] = Around } }) end)
      assert.truthy(message:find(path .. ": Around" .. kind .. ", made of its config in the file, failed: ", 1, true), message)
      local second = flow.Model(input, Around(layers.Dense(3), 2)(input))
      second:load_weights(path)
      expect_the_same(second, model)
    end)
  end)
end
