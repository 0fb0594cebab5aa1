-- saving_hooks_spec.lua: what scripts' classes say of how they are saved: variables of their own, files of their own, what they were built
-- and compiled with; and the weights that belong to a model itself.
local support = require "spec.support.init"
local ffi = require "ffi"
local flow = require "flow"

local layers, keras, message_of = flow.layers, flow.keras, support.message_of
local register = flow.utils.register_keras_serializable "hooks"
local function uniform(...) return flow.random.uniform({ ... }, { seed = 3 }) end
local function largest(a, b) return (a - b):abs():max():item() end
local function again(model)
  local path = support.folder() .. "/model.keras"
  model:save(path)
  return flow.load_model(path)
end

pcall(ffi.cdef, "int setenv(const char *name, const char *value, int overwrite); int unsetenv(const char *name);")

describe("files of models", function()
  it("hold the weights that a model has itself, beside those of its layers", function()
    local Scaled = flow.Model:extend "Scaled"
    function Scaled:init() self.dense = layers.Dense(2) end
    function Scaled:build(shape)
      self.gain = self:add_weight { name = "gain", shape = { shape[#shape] }, initializer = "random_normal" }
    end
    function Scaled:call(x) return self.dense(x * self.gain) end
    register(Scaled)
    local model, x = Scaled(), uniform(4, 3)
    local y = model(x)
    assert.equal(0, largest(y, again(model)(x)))
    local path = support.folder() .. "/model.weights.h5"
    model:save_weights(path)
    local other = Scaled()
    other(x)
    other:load_weights(path)
    assert.equal(0, largest(y, other(x)))
  end)

  it("hold what save_own_variables puts into the store", function()
    local Own = layers.Dense:extend "Own"
    function Own:init(units, options)
      layers.Dense.init(self, units, options)
      self.extra = flow.Variable(uniform(5), { name = "extra", trainable = false })
    end
    function Own:save_own_variables(store)
      layers.Dense.save_own_variables(self, store)
      store.twice = self.extra * 2
    end
    function Own:load_own_variables(store)
      for i, v in ipairs(self.weights) do v:assign(store[tostring(i - 1)]) end
      self.extra:assign(store.twice / 2)
    end
    function Own:call(x) return layers.Dense.call(self, x) * self.extra end
    register(Own)
    local model, x = flow.Sequential { Own(1) }, uniform(4, 3)
    model(x)
    model.layers[1].extra:assign(uniform(5) + 1)
    local loaded = again(model)
    assert.near(0, largest(model.layers[1].extra, loaded.layers[1].extra), 1e-7)
    assert.near(0, largest(model(x), loaded(x)), 1e-6)
    local dense, store = layers.Dense(2), {}
    dense:build { -1, 3 }
    dense:save_own_variables(store)
    assert.same({ 3, 2 }, { unpack(store["0"].shape) })
    assert.matches('found no "1"', message_of(function() dense:load_own_variables { ["0"] = store["0"] } end))
  end)

  it("hold the files of save_assets", function()
    local Words = layers.Dense:extend "Words"
    function Words:init(words, options)
      layers.Dense.init(self, options)
      self.words = words
    end
    local seen
    function Words:save_assets(folder)
      seen = folder
      flow.io.makedirs(folder .. "/inner")
      flow.io.write(folder .. "/inner/words.txt", self.words)
    end
    function Words:load_assets(folder) self.words = flow.io.read_file(folder .. "/inner/words.txt") end
    register(Words)
    local model = flow.Sequential { Words("a b\0c", { units = 5 }) }
    model(uniform(2, 3))
    local parent, before = support.folder(), os.getenv "TMPDIR"
    ffi.C.setenv("TMPDIR", parent, 1)
    finally(function()
      if before then ffi.C.setenv("TMPDIR", before, 1) else ffi.C.unsetenv "TMPDIR" end
    end)
    assert.equal("a b\0c", again(model).layers[1].words)
    assert.equal(parent, flow.io.dirname(seen))
    assert.same({}, flow.io.listdir(parent))
    ffi.C.setenv("TMPDIR", parent .. "/none", 1)
    assert.matches("no temporary folder can be made in " .. parent .. "/none: TMPDIR names a folder that exists and may be written to",
      support.message_of(again, model), 1, true)
  end)

  it("hold the layers that are fields by numbers", function()
    local Stacked = layers.Layer:extend "Stacked"
    function Stacked:init() self[1], self[2] = layers.Dense(3), layers.Dense(2) end
    function Stacked:call(x) return self[2](self[1](x)) end
    register(Stacked)
    local Numbered = flow.Model:extend "Numbered"
    function Numbered:init() self[1], self[2] = Stacked(), layers.Dense(2) end
    function Numbered:call(x) return self[2](self[1](x)) end
    register(Numbered)
    local x = uniform(2, 4)
    for _, model in ipairs { flow.Sequential { Stacked() }, Numbered() } do
      local y = model(x)
      assert.equal(0, largest(y, again(model)(x)))
    end
  end)

  it("build layers with what get_build_config says", function()
    local Begun = layers.Layer:extend "Begun"
    function Begun:init(units, options)
      layers.Layer.init(self, options)
      self.units = units or 32
    end
    function Begun:build(shape, initializer)
      self.w = self:add_weight { name = "w", shape = { shape[#shape], self.units }, initializer = initializer }
      self.initializer_of_w = initializer
    end
    function Begun:call(x) return x:matmul(self.w) end
    function Begun:get_config() return { units = self.units, name = self.name } end
    function Begun:get_build_config()
      local config = layers.Layer.get_build_config(self)
      config.initializer = self.initializer_of_w
      return config
    end
    function Begun:build_from_config(config) self:build(config.input_shape, config.initializer) end
    register(Begun)
    local layer = Begun(4)
    layer:build({ -1, 3 }, "random_normal")
    local model, x = flow.Sequential { layer, layers.Dense(1) }, uniform(2, 3)
    local y, loaded = model(x), again(model)
    assert.equal("random_normal", loaded.layers[1].initializer_of_w)
    assert.equal(0, largest(y, loaded(x)))
  end)

  it("compile models as compile_from_config says", function()
    local function tenth(y_true, y_pred) return (y_pred - y_true):square():sum(2) / 10 end
    flow.utils.register_keras_serializable("hooks", "tenth")(tenth)
    local Compiled = flow.Model:extend "Compiled"
    function Compiled:init() self.dense = layers.Dense(4) end
    function Compiled:call(x) return self.dense(x) end
    function Compiled:compile(optimizer, loss_fn)
      flow.Model.compile(self, { optimizer = optimizer, loss = loss_fn })
      self.loss_fn = loss_fn
    end
    function Compiled:get_compile_config() return { optimizer = self.optimizer, loss_fn = self.loss_fn } end
    function Compiled:compile_from_config(config)
      local read = keras.utils.deserialize_keras_object
      self:compile { optimizer = read(config.optimizer), loss_fn = read(config.loss_fn) }
    end
    register(Compiled)
    local model = Compiled()
    model:compile { optimizer = flow.optimizers.SGD(0.25), loss_fn = tenth }
    local x, y = uniform(4, 3), uniform(4, 4)
    model:fit(x, y, { verbose = 0 })
    local loaded = again(model)
    assert.equal(tenth, loaded.loss_fn)
    assert.equal(0.25, loaded.optimizer.learning_rate)
    assert.near(model:evaluate(x, y, { verbose = 0, return_dict = true }).loss,
      loaded:evaluate(x, y, { verbose = 0, return_dict = true }).loss, 1e-6)
  end)
end)
