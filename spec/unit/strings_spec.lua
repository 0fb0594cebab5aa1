-- strings_spec.lua: strings as elements of data sets, as tensors, as arguments of layers and as inputs of models; what is refused.
local support = require "spec.support.init"
local flow = require "flow"

local Dataset, layers = flow.data.Dataset, flow.layers

-- The message of f(...), called by a line of this file.
local function message_of(f, ...)
  local given = { ... }
  return support.message_of(function()
    local result = f(unpack(given))
    return result
  end)
end

local TEXTS = { "one fish", "two fish", "red fish", "blue fish and a whale" }

local function rows(dataset)
  local list = {}
  for x in dataset:iter() do list[#list + 1] = type(x) == "string" and x or x:totable() end
  return list
end

describe("tensors of strings", function()
  it("are lists of texts: one text alone is Lua's", function()
    assert.matches('got the string "a"; one text is a string of Lua\'s, flow.tensor { "a", "b" } holds several',
      message_of(function() flow.tensor "a" end))
  end)

  it("are compared byte by byte, with shapes that are broadcast", function()
    local a, b, c = flow.tensor { { "a", "b" }, { "c", "a" } }, flow.tensor { "a", "b" }, flow.tensor { { "a" }, { "c" } }
    assert.same({ { true, true }, { false, false } }, flow.equal(a, b):totable())            -- tf.equal's results
    assert.same({ { false, true }, { false, true } }, flow.not_equal(a, c):totable())
    assert.same({ { true, false }, { false, false } }, c:eq(b):totable())
    assert.same({ { false, true }, { true, false } }, flow.ne("a", a):totable())
    assert.is_true(flow.equal("a\0b", "a\0b"):item())
    assert.equal("bool", flow.equal("a", "b").dtype)
    assert.error_matches(function() flow.equal(a, 1) end, "strings are compared with strings, got the number 1")
    assert.error_matches(function() flow.equal(a, flow.tensor { "a", "b", "c" }) end, "the shapes {2, 2} and {3} do not fit")
    local lines = Dataset.from_tensor_slices { "0,x", "1,y", "1,z" }
    local kept = lines:filter(function(line) return flow.not_equal(flow.strings.substr(line, 1, 1), "0") end)
    assert.same({ "1,y", "1,z" }, rows(kept))
    assert.same({ { true, false }, { false } }, rows(lines:batch(2):map(function(batch) return flow.equal(batch, "0,x") end)))
  end)

  it("are lists that know their shape, and can be moved", function()
    local t = flow.tensor { { "a", "b" }, { "c", "" } }
    assert.same({ 2, 2 }, t.shape)
    assert.equal("string", t.dtype)
    assert.equal("c", t[2][1])
    assert.equal("", t[-1][2])
    assert.same({ "a", "b", "c", "" }, t:reshape { -1 }:totable())
    assert.same({ 2, 2, 1 }, t:expand_dims(-1).shape)
    assert.same({ 2, 2 }, t:expand_dims(-1):squeeze(-1).shape)
    assert.equal("x", flow.tensor({ "x" }):item())
    local ops, pair = flow.keras.ops, flow.tensor { "a", "b" }
    assert.same({ { "a" }, { "b" } }, ops.expand_dims(pair, -1):totable())
    assert.same({ { "a", "b" } }, ops.expand_dims(pair, { axis = 1 }):totable())
    assert.same({ { "a" }, { "b" } }, ops.reshape(pair, { -1, 1 }):totable())
    assert.same({ { "a" }, { "b" } }, ops.reshape(pair, 2, 1):totable())
    assert.same({ "a", "b" }, ops.squeeze(ops.expand_dims(pair, -1), -1):totable())
    assert.matches("2 strings do not fit the shape {3}", message_of(ops.reshape, pair, { 3 }))
  end)

  it("refuse what is for numbers", function()
    local t = flow.tensor { "a", "b" }
    for _, f in ipairs { function() return t + 1 end, function() return flow.exp(t) end, function() return flow.matmul(t, t) end,
                         function() return layers.Dense(2)(t) end } do
      assert.matches("strings are not numbers: layers such as TextVectorization", message_of(f))
    end
    assert.matches("has no field \"sum\"", message_of(function() return t:sum() end))
    assert.matches("rows of strings have different lengths", message_of(flow.tensor, { { "a" }, { "b", "c" } }))
    assert.matches("strings have the dtype \"string\", not \"int32\"", message_of(flow.tensor, { "1" }, { dtype = "int32" }))
    assert.matches("4 strings do not fit the shape {3}", message_of(function() return flow.tensor(TEXTS):reshape { 3 } end))
  end)
end)

describe("positions among strings", function()
  it("may be tensors with one number, as among numbers: a line that says how many words it has", function()
    local words, two = flow.tensor { "a", "b", "c" }, flow.tensor(2, { dtype = "int32" })
    assert.equal("b", words[two])
    assert.same({ "b", "c" }, words[{ { two, -1 } }]:totable())
    assert.same({ "a", "b" }, words[{ { 1, two } }]:totable())
    local lines = flow.data.Dataset.from_tensor_slices { { "2 a b 5 6", "1 c 7" } }
    local found = {}
    for tokens, tags in lines:map(function(line)
      local parts = flow.strings.split(line, " ")
      local length = flow.strings.to_number(parts[1], { out_type = "int32" })
      return parts[{ { 2, length + 1 } }], flow.strings.to_number(parts[{ { length + 2, -1 } }], { out_type = "int64" })
    end):iter() do found[#found + 1] = { tokens:totable(), tags:totable() } end
    assert.same({ { { "a", "b" }, { 5, 6 } }, { { "c" }, { 7 } } }, found)
    assert.has_error(function() return words[{ { flow.tensor { 1, 2 }, 2 } }] end)
  end)
end)

describe("strings as elements", function()
  it("are joined along an axis, and with nothing else", function()
    local two = flow.tensor { { "a", "b" }, { "c", "d" } }
    assert.same({ { "a", "b", "x" }, { "c", "d", "y" } }, flow.concat({ two, { { "x" }, { "y" } } }, -1):totable())
    assert.same({ { "a", "b" }, { "c", "d" }, { "x", "y" } }, flow.concat({ two, { { "x", "y" } } }):totable())
    assert.same({ { { "a", "a" }, { "b", "b" } }, { { "c", "c" }, { "d", "d" } } }, flow.stack({ two, two }, 3):totable())
    assert.same({ 2, 2 }, flow.shape(two))
    local function problem_of(...) return (select(2, pcall(...))) end
    assert.matches("strings are joined with strings, entry 2 is", problem_of(flow.concat, { two, flow.ones { 2, 2 } }))
    assert.matches("shapes {2, 2} and {1, 1}; these must be equal but for axis 1", problem_of(flow.concat, { two, { { "x" } } }), 1, true)
    assert.matches("axis 3 of strings with 2 axes", problem_of(flow.concat, { two, two }, 3))
  end)

  it("go through every stage", function()
    local source = Dataset.from_tensor_slices(TEXTS)
    assert.same({ { "one fish", "two fish" }, { "red fish", "blue fish and a whale" } }, rows(source:batch(2)))
    assert.same({ { TEXTS[1], TEXTS[2] }, { TEXTS[3], TEXTS[4] } }, rows(source:batch(2):cache():prefetch(1)))
    assert.same(TEXTS, rows(source:batch(3):unbatch()))
    local shuffled = rows(source:shuffle(4, { seed = 3 }))
    table.sort(shuffled)
    assert.same({ TEXTS[4], TEXTS[1], TEXTS[3], TEXTS[2] }, shuffled)
    local path = support.folder() .. "/cached"
    assert.same(rows(source:batch(2)), rows(source:batch(2):cache(path)))
    assert.same(rows(source:batch(2)), rows(source:batch(2):cache(path)))
    assert.same({ { { TEXTS[1], TEXTS[2] }, { TEXTS[3], TEXTS[4] } } }, rows(source:batch(2):batch(2)))
    assert.same({ { TEXTS[1], TEXTS[2], TEXTS[3] }, { TEXTS[4] } }, rows(source:padded_batch(3)))
  end)

  it("may have their own axes", function()
    local nested = flow.tensor { { "a", "bb" }, { "ccc", "" }, { "d", "e" } }
    local source = Dataset.from_tensor_slices { nested, flow.tensor { 1, 2, 3 } }
    assert.same({ shape = { 2 }, dtype = "string" }, source.element_spec[1])
    assert.same({ { "a", "bb" }, { "ccc", "" }, { "d", "e" } }, rows(source))
    for x, y in source:batch(3):iter() do
      assert.same(nested:totable(), x:totable())
      assert.same({ 1, 2, 3 }, y:totable())
    end
    assert.same({ nested:totable() }, rows(Dataset.from_tensors(nested)))
    local made = Dataset.from_generator(function()
      local n = 0
      return function()
        n = n + 1
        return n < 3 and nested[n] or nil
      end
    end)
    assert.same({ { "a", "bb" }, { "ccc", "" } }, rows(made))
  end)
end)

describe("layers for strings", function()
  local vectorize
  setup(function()
    vectorize = layers.TextVectorization { output_sequence_length = 3 }
    vectorize:adapt(TEXTS)
  end)

  it("learn the same from lists and from data sets in batches", function()
    local other = layers.TextVectorization()
    other:adapt(Dataset.from_tensor_slices { TEXTS, flow.tensor { 1, 2, 3, 4 } }:batch(3))
    assert.same(vectorize:get_vocabulary(), other:get_vocabulary())
    other = layers.TextVectorization()
    other:adapt(Dataset.from_tensor_slices(TEXTS))
    assert.same(vectorize:get_vocabulary(), other:get_vocabulary())
    other = layers.TextVectorization()
    other:adapt(Dataset.from_tensor_slices(TEXTS):batch(1), { steps = 2 })
    assert.equal(5, #other:get_vocabulary())
  end)

  it("run in ds:map on batches and on single strings, by several threads, and are chained", function()
    local source = Dataset.from_tensor_slices { TEXTS, flow.tensor { 1, 2, 3, 4 } }
    local expected = vectorize(TEXTS):totable()
    local found = {}
    for x, y in source:map(function(x, y) return vectorize(x), y * 2 end, { num_parallel_calls = 2 }):batch(4):iter() do
      assert.same({ 2, 4, 6, 8 }, y:totable())
      found = x:totable()
    end
    assert.same(expected, found)
    local lookup = layers.IntegerLookup { vocabulary = { 2 }, output_mode = "one_hot" }
    for x in source:batch(4):map(function(x) return lookup(vectorize(x)) end):iter() do assert.same({ 4, 3, 2 }, { unpack(x.shape) }) end
    local double = source:batch(4):map(function(x) return vectorize(x) * 2 end)
    for x in double:iter() do assert.equal(2 * expected[1][1], x:totable()[1][1]) end
  end)

  it("call functions of Lua eagerly, in adapt and in ds:map", function()
    local own = layers.TextVectorization { standardize = function(s) return (s:upper():gsub("FISH", "")) end,
      split = function(s)
        local list = {}
        for word in s:gmatch "%a+" do list[#list + 1] = word end
        return list
      end, output_sequence_length = 2 }
    own:adapt(Dataset.from_tensor_slices(TEXTS):batch(2))
    assert.same({ "", "[UNK]", "WHALE", "TWO", "RED", "ONE", "BLUE", "AND", "A" }, own:get_vocabulary())
    assert.same({ { 5, 0 }, { 3, 0 }, { 4, 0 }, { 6, 7 } }, own(TEXTS):totable())
    for x in Dataset.from_tensor_slices(TEXTS):batch(4):map(function(x) return own(x) end):iter() do
      assert.same({ { 5, 0 }, { 3, 0 }, { 4, 0 }, { 6, 7 } }, x:totable())
    end
    local model = flow.Sequential { layers.Input({}, { dtype = "string" }), own }
    assert.matches("a function of Lua as standardize or split, which a file cannot hold",
      message_of(function() model:save(support.folder() .. "/m.keras") end))
  end)

  it("say what they cannot do", function()
    local fresh = layers.StringLookup()
    assert.matches("has no vocabulary yet: adapt%(%) it to data, or give it one", message_of(fresh, { "a" }))
    assert.matches("takes strings, found float32", message_of(vectorize, flow.ones { 2 }))
    assert.matches("takes whole numbers, found string", message_of(layers.IntegerLookup { vocabulary = { 1 } }, { "a" }))
    assert.matches("strings to be split have one axis", message_of(vectorize, { { "a", "b" } }))
    assert.matches("was given a vocabulary, so it cannot adapt", message_of(function()
      layers.StringLookup { vocabulary = { "a" } }:adapt { "b" }
    end))
    assert.matches("the vocabulary has the string \"a\" twice", message_of(layers.StringLookup, { vocabulary = { "a", "a" } }))
    assert.matches("ragged = true is not supported", message_of(layers.TextVectorization, { ragged = true }))
    assert.matches("sparse = true is not supported", message_of(layers.StringLookup, { sparse = true }))
    assert.matches("standardize is .*lower.*, false or a function, got the string \"upper\"",
      message_of(layers.TextVectorization, { standardize = "upper" }))
    assert.matches("output_mode is int, multi_hot, count, tf_idf, got the string \"one_hot\"",
      message_of(layers.TextVectorization, { output_mode = "one_hot" }))
    assert.matches("\"z\" is not in the vocabulary, and num_oov_indices = 0",
      message_of(layers.StringLookup { vocabulary = { "a" }, num_oov_indices = 0 }, { "a", "z" }))
    assert.matches("inside of a traced function it has none", message_of(flow.fn(function(x)
      return layers.Hashing { num_bins = 3 }(x)
    end), flow.ones { 2 }))
    assert.matches("layers without weights make of them; .*Dense.* has weights", message_of(function()
      local x = flow.Input { 1 }
      return flow.Model(x, layers.Dense(2)(layers.Hashing { num_bins = 3, output_mode = "one_hot" }(layers.Dense(1)(x))))
    end))
    assert.matches("arithmetic on local 'x' %(a string value%); the function was called with values, since it cannot be traced: "
      .. "a text has no value",
      message_of(function() Dataset.from_tensor_slices(TEXTS):map(function(x) return x + 1 end) end))
  end)
end)

describe("strings in ds:map", function()
  local data = Dataset.from_tensor_slices { { word = TEXTS, n = { 1, 2, 3, 4 } }, { 5, 6, 7, 8 } }

  it("are moved as they are eagerly, with layers after it or without", function()
    local words = layers.StringLookup { vocabulary = TEXTS, mask_token = false, output_mode = "multi_hot" }
    local seen = {}
    for x, moved, back, counted in data:batch(2):map(function(x)
      local column = flow.keras.ops.expand_dims(x.word, -1)
      return column, flow.reshape(x.word, { 1, -1 }), flow.squeeze(flow.expand_dims(column, -1), -1), words(column)
    end):iter() do
      seen[#seen + 1] = { x:totable(), moved:totable(), back:totable(), counted:argmax(-1):totable() }
    end
    local a, b = { { TEXTS[1] }, { TEXTS[2] } }, { { TEXTS[3] }, { TEXTS[4] } }
    assert.same({ { a, { { TEXTS[1], TEXTS[2] } }, a, { 2, 3 } }, { b, { { TEXTS[3], TEXTS[4] } }, b, { 4, 5 } } }, seen)
    for x in data:map(function(x) return x.word:expand_dims(-1) end):take(1):iter() do assert.same({ TEXTS[1] }, x:totable()) end
  end)

  it("meet numbers that the function computed: what a layer for strings or hashes takes, it may have made before", function()
    local hash, cross = layers.Hashing { num_bins = 50 }, layers.HashedCrossing { num_bins = 60 }
    local lookup = layers.StringLookup { vocabulary = { TEXTS[4], TEXTS[2] } }
    local function f(x, y)
      local doubled = (x.n * 2):to "int64"
      return hash(doubled), cross { x.word, doubled + lookup(x.word) }, hash(lookup(x.word) + 1):to "float32" * y
    end
    local bins, crossed, products = f({ word = flow.tensor(TEXTS), n = flow.tensor { 1, 2, 3, 4 } }, flow.tensor { 5, 6, 7, 8 })
    local row = 0
    for b, c, p in data:map(f):iter() do
      row = row + 1
      assert.same({ bins[row]:item(), crossed[row]:item(), products[row]:item() }, { b:item(), c:item(), p:item() })
    end
    assert.equal(4, row)
  end)
end)

describe("models on strings", function()
  local y = flow.tensor { 1, 0, 1, 0 }
  local function vectorizer()
    local layer = layers.TextVectorization { output_sequence_length = 4 }
    layer:adapt(TEXTS)
    return layer
  end

  it("are connected by the first data that they meet, whichever call brings it", function()
    local function model()
      local layer = layers.TextVectorization { output_mode = "multi_hot" }
      layer:adapt(TEXTS)
      return flow.Sequential { layer, layers.Dense(2, { kernel_initializer = "ones" }) }
    end
    local expected = model()(TEXTS):totable()
    assert.same(expected, model():predict(TEXTS, { verbose = 0 }):totable())
    assert.same(expected, model():predict(flow.tensor(TEXTS), { verbose = 0 }):totable())
    assert.same(expected, model():predict(Dataset.from_tensor_slices(TEXTS):batch(3), { verbose = 0 }):totable())
    local fitted = model()
    fitted:compile { loss = "mse" }
    fitted:fit(TEXTS, flow.zeros { 4, 2 }, { verbose = 0 })
    assert.is_true(fitted.built)
  end)

  it("train and predict alike on lists, tensors and data sets, and are saved whole", function()
    flow.set_random_seed(5)
    local model = flow.Sequential { layers.Input({ 1 }, { dtype = "string" }), vectorizer(), layers.Embedding(12, 4),
                                    layers.GlobalAveragePooling1D(), layers.Dense(1, { activation = "sigmoid" }) }
    model:compile { optimizer = flow.optimizers.Adam(0.1), loss = "binary_crossentropy" }
    local source = Dataset.from_tensor_slices { TEXTS, y }:batch(2)
    local first = model:evaluate(TEXTS, y, { verbose = 0 }).loss
    assert.near(first, model:evaluate(source, { verbose = 0 }).loss, 1e-6)
    model:fit(TEXTS, y, { epochs = 10, verbose = 0 })
    model:fit(source:shuffle(2), { epochs = 10, verbose = 0, validation_data = source })
    assert.is_true(model:evaluate(source, { verbose = 0 }).loss < first / 10)
    local expected = model:predict(TEXTS, { verbose = 0 }):totable()
    assert.same(expected, model:predict(Dataset.from_tensor_slices(TEXTS):batch(2), { verbose = 0 }):totable())
    assert.same(expected, model(TEXTS):totable())
    assert.same(expected, model(flow.tensor(TEXTS):reshape { 4, 1 }):totable())
    assert.same(expected, model:predict_on_batch(TEXTS):totable())
    local path = support.folder() .. "/text.keras"
    model:save(path)
    assert.same(expected, flow.load_model(path):predict(TEXTS, { verbose = 0 }):totable())
    assert.is_number(model:train_on_batch(TEXTS, y).loss)
  end)

  it("train eagerly, with several inputs by name, and inside of other models", function()
    local word, number = flow.Input({ 1 }, { dtype = "string", name = "word" }), flow.Input({ 2 }, { name = "number" })
    local h = layers.Concatenate()({ layers.StringLookup { vocabulary = TEXTS, output_mode = "one_hot" }(word), number })
    local model = flow.Model { inputs = { word, number }, outputs = layers.Dense(1)(h) }
    model:compile { optimizer = "sgd", loss = "mse", run_eagerly = true }
    local numbers = flow.ones { 4, 2 }
    local before = model:evaluate({ word = TEXTS, number = numbers }, y, { verbose = 0 }).loss
    model:fit({ TEXTS, numbers }, y, { epochs = 3, verbose = 0 })
    assert.is_true(model:evaluate({ TEXTS, numbers }, y, { verbose = 0 }).loss < before)
    local outer_word, outer_number = flow.Input({ 1 }, { dtype = "string" }), flow.Input { 2 }
    local outer = flow.Model { inputs = { outer_word, outer_number }, outputs = model({ outer_word, outer_number }) * 2 }
    local expected = (model:predict({ TEXTS, numbers }, { verbose = 0 }) * 2):totable()
    assert.same(expected, outer:predict({ TEXTS, numbers }, { verbose = 0 }):totable())
  end)

  it("refuse strings where numbers are due", function()
    assert.matches('substr: position 0 is not in "ab": positions count from 1', message_of(flow.strings.substr, "ab", 0, 1))
    local input = flow.Input({ 1 }, { dtype = "string" })
    assert.matches("takes numbers, its input 1 holds strings", message_of(layers.Dense(2), input))
    assert.matches("takes strings, got", message_of(function()
      flow.Sequential { layers.Input({ 1 }, { dtype = "string" }), vectorizer() }:predict(flow.ones { 2 })
    end))
    local h = layers.Dense(1)(flow.Input { 3 })
    assert.matches("prepares data on the host, so that it is called on inputs", message_of(function()
      return flow.Model { inputs = h.node.inputs[1], outputs = layers.Hashing { num_bins = 3 }(h) }
    end))
  end)
end)
