-- text_calls_spec.lua: layers written in Lua that are called on strings: eagerly, in ds:map and in models; what is refused.
local support = require "spec.support.init"
local flow = require "flow"

local layers = flow.layers

local VOCABULARY = { "ann", "bob", "cem", "dan", "eva", "fay" }

-- The quotient-remainder embedding of a recipe of Keras: two small tables in place of a large one.
local Quotient = layers.Layer:extend "Quotient"
function Quotient:init(vocabulary, dim, buckets, options)
  layers.Layer.init(self, options)
  self.buckets = buckets
  self.lookup = layers.StringLookup { vocabulary = vocabulary, mask_token = false, num_oov_indices = 0 }
  self.quotients = layers.Embedding(buckets, dim)
  self.remainders = layers.Embedding(buckets, dim)
end
function Quotient:call(inputs)
  local index = self.lookup(inputs)
  return self.quotients(flow.floor_divide(index, self.buckets)) * self.remainders(flow.mod(index, self.buckets))
end

-- The rows that it gives for all of VOCABULARY, by its tables.
local function expected(layer)
  local list = {}
  for i = 0, #VOCABULARY - 1 do
    list[i + 1] = (layer.quotients.embeddings[math.floor(i / 3) + 1] * layer.remainders.embeddings[i % 3 + 1]):totable()
  end
  return list
end

describe("layers written in Lua on strings", function()
  it("run eagerly on tensors and lists of them, on tables by name, and beside numbers", function()
    local layer = Quotient(VOCABULARY, 2, 3)
    local rows = layer(flow.tensor(VOCABULARY)):totable()
    assert.same(expected(layer), rows)
    assert.same(rows, layer(VOCABULARY):totable())
    assert.same({ rows[2] }, layer("bob"):totable())

    local Weighted = layers.Layer:extend "Weighted"
    function Weighted:init() self.lookup = layers.StringLookup { vocabulary = VOCABULARY } end
    function Weighted:call(word, number, training)
      if not getmetatable(word) then word, number = word.word, word.number end
      return self.lookup(word):to "float32" * number + (training and 100 or 0)
    end
    local weighted, numbers = Weighted(), flow.tensor { 1, 10 }
    assert.same({ 2, 10 }, weighted({ "bob", "ann" }, numbers):totable())
    assert.same({ 102, 110 }, weighted({ "bob", "ann" }, numbers, { training = true }):totable())
    assert.same({ 2, 10 }, weighted({ word = { "bob", "ann" }, number = numbers }):totable())
  end)

  it("build what their build() says, and are steps of ds:map", function()
    local Scaled = layers.Layer:extend "Scaled"
    function Scaled:init() self.lookup = layers.StringLookup { vocabulary = VOCABULARY } end
    function Scaled:build(shape)
      self.rank = #shape
      self.gain = self:add_weight { name = "gain", shape = {}, initializer = "ones" }
    end
    function Scaled:call(word) return self.lookup(word):to "float32" * self.gain end
    local scaled = Scaled()
    assert.same({ { 1 }, { 2 } }, scaled({ { "ann" }, { "bob" } }):totable())
    assert.equal(2, scaled.rank)

    local layer = Quotient(VOCABULARY, 2, 3)
    local rows = layer(VOCABULARY):totable()
    local names = flow.data.Dataset.from_tensor_slices(flow.tensor(VOCABULARY)):batch(6)
    for x in names:map(function(name) return layer(name) end):iter() do assert.same(rows, x:totable()) end
  end)

  it("become the calls inside of them in models, which train and are saved", function()
    local input = flow.Input({}, { dtype = "string", name = "user" })
    local layer = Quotient { vocabulary = VOCABULARY, dim = 2, buckets = 3 }
    local model = flow.Model(input, layers.Dense(1)(layer(input)))
    assert.equal(4, #model.trainable_weights)
    model:compile { optimizer = "adam", loss = "mse" }
    local before = layer.quotients.embeddings:value():totable()
    local texts = flow.data.Dataset.from_tensor_slices({ flow.tensor(VOCABULARY), flow.ones { 6, 1 } }):batch(3)
    model:fit(texts, { epochs = 2, verbose = 0 })
    assert.are_not.same(before, layer.quotients.embeddings:value():totable())
    assert.same(expected(layer), layer(VOCABULARY):totable())
    local predicted = model:predict(VOCABULARY, { verbose = 0 }):totable()

    local path = support.folder() .. "/model.keras"
    model:save(path)
    local read = flow.load_model(path)
    os.remove(path)
    assert.same(predicted, read:predict(VOCABULARY, { verbose = 0 }):totable())

    local sequential = flow.Sequential { layers.Input({}, { dtype = "string" }), Quotient(VOCABULARY, 2, 3), layers.Dense(1) }
    assert.equal(4, #sequential.trainable_weights)
    assert.equal(6, sequential:predict(VOCABULARY, { verbose = 0 }).shape[1])
  end)

  it("are refused in models where they have their own weights", function()
    local Scaled = layers.Layer:extend "Scaled"
    function Scaled:init() self.lookup = layers.StringLookup { vocabulary = VOCABULARY } end
    function Scaled:build() self.gain = self:add_weight { name = "gain", shape = {}, initializer = "ones" } end
    function Scaled:call(word) return self.lookup(word):to "float32" * self.gain end
    assert.matches('Scaled "scaled.*" is called on strings and has its own weights, "gain" among them', support.message_of(function()
      return (Scaled()(flow.Input({}, { dtype = "string" })))
    end))
  end)
end)

describe("ds:map on strings in batches", function()
  local function rows_of(dataset)
    local list = {}
    for x in dataset:iter() do list[#list + 1] = x.shape[1] end
    return list
  end
  local texts = {}
  for i = 1, 38 do texts[i] = VOCABULARY[i % 6 + 1] end
  local batches = flow.data.Dataset.from_tensor_slices { flow.tensor(texts), flow.ones { 38, 4 } }:batch(4)

  it("has a smaller last batch where the function is called by Lua, too", function()
    local lower = batches:map(function(text, numbers) return flow.strings.lower(text), numbers, flow.ones { 3 } end)
    assert.equal("Dataset (string {None}, float32 {None, 4}, float32 {3})", tostring(lower))
    assert.same({ 4, 4, 4, 4, 4, 4, 4, 4, 4, 2 }, rows_of(lower))
  end)

  it("calls models whose first layers take strings as steps of the pipeline", function()
    local word, number = flow.Input({ 1 }, { dtype = "string", name = "word" }), flow.Input { 4 }
    local stage = flow.Model { inputs = { word, number },
                               outputs = { layers.StringLookup { vocabulary = VOCABULARY }(word), layers.Dense(2)(number) } }
    local calls = 0
    local mapped = batches:map(function(text, numbers)
      calls = calls + 1
      return unpack(stage { text, numbers })
    end)
    assert.same({ 4, 4, 4, 4, 4, 4, 4, 4, 4, 2 }, rows_of(mapped))
    assert.is_true(calls < 5)      -- traced, not called for each batch
    local ids, products = mapped:iter()()
    local wanted = stage { { { texts[1] }, { texts[2] }, { texts[3] }, { texts[4] } }, flow.ones { 4, 4 } }
    assert.same(wanted[1]:totable(), ids:totable())
    assert.same(wanted[2]:totable(), products:totable())
    local triple = flow.Input({ 3 }, { dtype = "string" })
    local of_three = flow.Model(triple, layers.StringLookup { vocabulary = VOCABULARY }(triple))
    local singles = flow.data.Dataset.from_tensor_slices(flow.tensor { { "ann", "bob", "cem" } })
    assert.matches("call batch%(%) before map%(%)", support.message_of(function()
      singles:map(function(text) return of_three(text) end)
    end))
  end)
end)
