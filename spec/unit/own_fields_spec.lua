-- own_fields_spec.lua: what classes of scripts keep in their fields, and what their methods get by the names of their parameters.

local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local x = flow.tensor { { 1, 2 }, { 3, 4 } }

local function count(list) return #list end

describe("layers in the fields of a layer", function()
  local Filled = flow.Model:extend "Filled"      -- lists are filled after they were assigned, as Python programs do
  function Filled:init(fill)
    self.parts = {}
    fill(self.parts)
    self.last = layers.Dense(1)
    self.call_parts = function(_, value) return value end
  end
  local function dense(units) return layers.Dense(units, { kernel_initializer = "ones" }) end

  it("are those of lists that are filled later, of lists in lists, and of tables by name", function()
    local function made(fill)
      local model = Filled(fill)
      function Filled:call(value)
        local function visit(entry)
          if type(entry) ~= "table" then return end
          if getmetatable(entry) then value = entry(value) return end
          for _, inner in ipairs(entry) do visit(inner) end
          for _, key in ipairs { "a", "b" } do visit(entry[key]) end
        end
        visit(self.parts)
        return self.last(value)
      end
      model(x)
      return model
    end
    assert.equal(6, count(made(function(parts) for i = 1, 2 do parts[i] = dense(2) end end).trainable_variables))
    assert.equal(6, count(made(function(parts) parts[1] = { dense(2), { dense(2) } } end).trainable_variables))
    assert.equal(6, count(made(function(parts) parts.b, parts.a = dense(2), { dense(3) } end).trainable_variables))
    assert.equal(4, count(made(function(parts) parts[1], parts[2] = "relu", dense(2) end).trainable_variables))
    local model = made(function(parts) parts[1], parts[2] = dense(2), dense(2) end)
    local last = model.last
    assert.is_true(model.layers[1] == model.parts[1] and model.layers[2] == model.parts[2] and model.layers[3] == last)
  end)

  it("are trained, saved and read back", function()
    local Stack = flow.Model:extend "Stack"
    function Stack:init()
      self.blocks = {}
      for i = 1, 3 do self.blocks[i] = { main = layers.Dense(2), gate = { layers.Dense(2, { activation = "sigmoid" }) } } end
    end
    function Stack:call(value)
      for _, block in ipairs(self.blocks) do value = block.main(value) * block.gate[1](value) end
      return value
    end
    local stack, path = Stack(), support.path()
    stack:compile { optimizer = "sgd", loss = "mse" }
    stack:fit(x, x, { epochs = 2, verbose = 0 })
    assert.equal(12, count(stack.trainable_variables))
    stack:save_weights(path .. ".weights.h5")
    local other = Stack()
    other(x)
    other:load_weights(path .. ".weights.h5")
    os.remove(path)
    os.remove(path .. ".weights.h5")
    assert.same(stack(x):totable(), other(x):totable())
  end)

  it("leave with the field that held them", function()
    local layer = layers.Layer:extend "Holder" ()
    layer.list = { layers.Dense(2), layers.Dense(3) }
    local first = layer.list[1]
    layer.kept = first
    assert.equal(2, count(layer._children))
    layer.list = false
    assert.same({ first }, { unpack(layer._children) })
  end)

  it("stand beside variables and data", function()
    local layer = layers.Layer:extend "Mixed" ()
    layer.words, layer.pairs = {}, {}
    for i = 1, 1000 do layer.words[i] = "word" end
    layer.pairs.scale = flow.Variable(2)
    layer.pairs.loop = layer.pairs      -- a table that holds itself
    assert.equal(1, count(layer.trainable_variables))
  end)
end)

describe("parameters of methods that scripts define", function()
  it("of call() are what is given by these names", function()
    local seen
    local Own = layers.Layer:extend "Own"
    function Own:call(value, training, mask)
      seen = { training = training, mask = mask }
      return value * 1
    end
    local own, mask = Own(), flow.tensor({ true, false }, { dtype = "bool" })
    own.supports_masking = true
    own(x)
    assert.same({}, seen)      -- nobody said it: nil, for its own default
    own(x, { training = true })
    assert.same({ training = true }, seen)
    own(x, { training = false, mask = mask })
    assert.is_false(seen.training)
    assert.is_true(seen.mask == mask)
    own(x, true)
    assert.is_true(seen.training)
    local outer = layers.Layer:extend "Outer" ()
    local class = getmetatable(outer).class
    function class:call(value) return own(value) end
    outer(x)
    assert.same({}, seen)
    outer(x, { training = true })
    assert.same({ training = true }, seen)
  end)

  it("reach the layers inside, also given by position", function()
    local Inside = layers.Layer:extend "Inside"
    function Inside:init() self.noise = layers.Dropout(0.99) end
    function Inside:call(value, training) return self.noise(value) end
    local inside, ones = Inside(), flow.ones { 1, 100 }
    assert.is_true(inside(ones, true):sum():item() ~= 100)
    assert.equal(100, inside(ones, false):sum():item())
    assert.equal(100, inside(ones):sum():item())
  end)

  it("of call() on several tensors are found by name, and what has no parameter is in the last one", function()
    local seen
    local Cross = layers.Layer:extend "Cross"
    function Cross:call(query, value, key, options)
      seen = { value = value ~= nil, key = key ~= nil, options = options }
      return query * 1
    end
    Cross()(x, { value = x, key = x, scale = 2 })
    assert.is_true(seen.value and seen.key)
    assert.equal(2, seen.options.scale)
    Cross()(x, x, { key = x })
    assert.is_true(seen.value and seen.key)
    Cross()(x, x, { scale = 3 })
    assert.is_false(seen.key)
    assert.equal(3, seen.options.scale)
    local Plain = layers.Layer:extend "Plain"
    function Plain:call(value, options)
      seen = options
      return value * 1
    end
    Plain()(x, { training = true })
    assert.is_true(seen.training)
  end)

  it("of compile() are what is given by these names", function()
    local Gan = flow.Model:extend "Gan"
    function Gan:compile(d_optimizer, g_optimizer, options)
      flow.Model.compile(self, options)
      self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
    end
    local one, other = flow.optimizers.SGD(0.1), flow.optimizers.SGD(0.2)
    local gan = Gan()
    gan:compile { d_optimizer = one, g_optimizer = other, loss = "mse" }
    assert.is_true(gan.d_optimizer == one and gan.g_optimizer == other)
    gan:compile(other, { g_optimizer = one })
    assert.is_true(gan.d_optimizer == other and gan.g_optimizer == one)
    local Two = flow.Model:extend "Two"
    function Two:compile(optimizer, loss_fn) flow.Model.compile(self, { optimizer = optimizer, loss = loss_fn }) end
    assert.error_matches(function() Two():compile { optimizer = one, loss_fn = "mse", los = 1 } end, 'compile: unknown option "los"')
    local Table = flow.Model:extend "Table"
    function Table:compile(given)
      flow.Model.compile(self, { loss = given.student_loss })
      self.given = given.alpha
    end
    local model = Table()
    model:compile { student_loss = "mse", alpha = 0.1 }
    assert.equal(0.1, model.given)
  end)
end)

describe("activation = false", function()
  it("is Keras' None: none", function()
    assert.equal("linear", layers.Dense(2, { activation = false }).activation)
    assert.equal("linear", layers.LSTM(2, { activation = false }).activation)
  end)
end)

describe("a model that contains layers which prepare data", function()
  it("trains these where nobody says otherwise, as they do by themselves", function()
    local pictures = flow.random.uniform { 4, 12, 12, 1 }
    local crops = flow.Sequential { layers.Rescaling(2), layers.RandomCrop(8, 8) }
    assert.equal(8, crops(pictures).shape[2])
    assert.equal(12, crops(pictures, { training = false }).shape[2])
    local Outer = layers.Layer:extend "OuterCrops"
    function Outer:init() self.crops = crops end
    function Outer:call(value) return self.crops(value) end
    assert.equal(8, Outer()(pictures).shape[2])
    assert.equal(12, Outer()(pictures, { training = false }).shape[2])
    local input = flow.Input { 12, 12, 1 }
    local noisy = flow.Model(input, layers.Dropout(0.99)(layers.RandomFlip()(input)))
    assert.is_true((noisy(pictures):sum() - pictures:sum()):abs():item() < 1e-3)      -- the dropout does nothing
  end)
end)

describe("names of TensorFlow that stand elsewhere", function()
  it("are answered by what to write", function()
    local function says(module, name, text)
      local ok, message = pcall(function() return module[name] end)
      assert.is_false(ok)
      assert.truthy(message:find(text, 1, true), message)
    end
    says(flow, "clip_by_value", "flow.clip")
    says(flow.image, "encode_png", "flow.image.save(path, picture")
    says(flow.image, "ssim_multiscale", "flow.image.ssim")
    says(flow.nn, "sigmoid_cross_entropy_with_logits", "from_logits = true")
    assert.same({ { { 2 }, { 1 } } }, flow.flip(flow.tensor { { { 1 }, { 2 } } }, -2):totable())
  end)
end)
