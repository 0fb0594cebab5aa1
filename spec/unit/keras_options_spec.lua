-- keras_options_spec.lua: names and options that scripts of Keras and tf.data use: those of Keras 2 that Keras 3 still takes,
-- tf.data.experimental, sounds in strings, functions by the names under which they are registered or held.
local support = require "spec.support.init"
local flow = require "flow"
local layers, Dataset = flow.layers, flow.data.Dataset
local message_of = support.message_of

describe("options that have other names in Keras 3", function()
  it("are those", function()
    assert.near(0.3, layers.LeakyReLU { alpha = 0.3 }:get_config().negative_slope, 1e-7)
    assert.near(-0.5, layers.LeakyReLU { alpha = 0.5 }(flow.tensor { -1 }):item(), 1e-7)
    assert.equal("LeakyReLU: negative_slope is given twice, as negative_slope and as alpha",
      message_of(function() layers.LeakyReLU(0.3, { alpha = 0.3 }) end))
    local model = flow.Sequential { layers.Dense(2, { input_dim = 3 }) }
    assert.same({ 5, 2 }, model(flow.ones { 5, 3 }).shape)
    assert.equal(30, layers.Embedding(10, 3, { input_length = 4 }):get_config().input_dim * 3)
    assert.equal(4, layers.LSTM(4, { implementation = 2 }):get_config().units)
  end)
end)

describe("tf.data.experimental", function()
  local experimental = flow.data.experimental

  it("has stages for apply, and the number of elements", function()
    assert.equal(3, experimental.cardinality(Dataset.range(3)))
    assert.equal(experimental.INFINITE_CARDINALITY, Dataset.range(3):apply(experimental.shuffle_and_repeat(3)):cardinality())
    local unknown = Dataset.range(4):filter(function(x) return x:gt(1) end)
    assert.equal(experimental.UNKNOWN_CARDINALITY, unknown:cardinality())
    assert.equal(2, unknown:apply(experimental.assert_cardinality(2)):cardinality())
    local firsts = {}
    for i in Dataset.range(2):apply(experimental.enumerate_dataset(5)):iter() do firsts[#firsts + 1] = i:item() end
    assert.same({ 5, 6 }, firsts)
  end)

  it("reads tables of comma-separated values", function()
    local path = support.path()
    local file = io.open(path, "w")
    file:write "age,name,score,y\n3,ann,0.5,1\n4,bob,1.5,0\n5,cy,2,1\n"
    file:close()
    local found = {}
    for x, y in experimental.make_csv_dataset(path, 2, { label_name = "y", num_epochs = 1, shuffle = false }):iter() do
      assert.same({ "int32", "float32", "int32" }, { x.age.dtype, x.score.dtype, y.dtype })
      for i = 1, #y do found[#found + 1] = { x.age[i]:item(), x.name:totable()[i], y[i]:item() } end
    end
    assert.same({ { 3, "ann", 1 }, { 4, "bob", 0 }, { 5, "cy", 1 } }, found)
    assert.equal(-1, experimental.make_csv_dataset(path, 2, { label_name = "y" }):cardinality())
    local function columns(texts, options)      -- of files with these texts; expected values are those of TensorFlow 2.18
      local folder, paths = support.folder(), {}
      for i, text in ipairs(texts) do
        paths[i] = ("%s/%d.csv"):format(folder, i)
        support.write(paths[i], text)
      end
      options.num_epochs, options.shuffle = 1, false
      return (experimental.make_csv_dataset(paths, 9, options):iter()())
    end
    local function dtypes(x, ...)
      local list = { ... }
      for i, name in ipairs(list) do list[i] = x[name].dtype end
      return list
    end
    local MISSING, EMPTY = "age,name,score,y\n3,ann,0.5,1\n?,bob,,0\n5,?,2,1\n", "age,name,score,y\n3,ann,0.5,1\n,bob,,0\n5,,2,1\n"
    for text, na_value in pairs { [MISSING] = "?", [EMPTY] = "" } do
      local x = columns({ text }, { na_value = na_value })
      assert.same({ "int32", "string", "float32" }, dtypes(x, "age", "name", "score"))
      assert.same({ { 3, 0, 5 }, { "ann", "bob", "" }, { 0.5, 0, 2 } }, { x.age:totable(), x.name:totable(), x.score:totable() })
    end
    local x = columns({ MISSING }, { na_value = "?", column_names = { "a", "b", "c", "d" }, select_columns = { "a", "c", 4 } })
    assert.same({ { 3, 0, 5 }, { 0.5, 0, 2 }, { 1, 0, 1 } }, { x.a:totable(), x.c:totable(), x.d:totable() })
    x = columns({ "1,1\n2,3\n4,5\n" }, { column_names = { "a", "b" } })      -- the first line is left out, whatever it says
    assert.same({ { 2, 4 }, { 3, 5 } }, { x.a:totable(), x.b:totable() })
    x = columns({ MISSING }, { na_value = "?", column_defaults = { { -1 }, { "NA" }, flow.tensor(7, { dtype = "float64" }), "int64" } })
    assert.same({ "float32", "string", "float64", "int64" }, dtypes(x, "age", "name", "score", "y"))
    assert.same({ { 3, -1, 5 }, { "ann", "bob", "NA" }, { 0.5, 7, 2 } }, { x.age:totable(), x.name:totable(), x.score:totable() })
    x = columns({ "age,name\n3,1\n4,x\n", "age,name\n,5\n4,6\n" }, {})      -- columns are what those of the first file are
    assert.same({ { 3, 4, 0, 4 }, { "1", "x", "5", "6" } }, { x.age:totable(), x.name:totable() })
    for pattern, case in pairs {
      ['column 1: .*"0.5" is not a whole number'] = { { "age\n3\n", "age\n0.5\n" }, {} },
      ["has 2 columns, column_names names 1"] = { { "a,b\n1,2\n" }, { column_names = { "a" } } },
      ['has no column agee; did you mean "age"%?'] = { { "age\n3\n" }, { select_columns = { "agee" } } },
      ["column_defaults has 1 entries for 2 columns"] = { { "a,b\n1,2\n" }, { column_defaults = { "int32" } } },
      ["field 1 of record 2 is empty, and has no default"] = { { "a\n1\n?\n" }, { column_defaults = { "int32" }, na_value = "?" } },
    } do
      assert.truthy(message_of(function() columns(case[1], case[2]) end):find(pattern), pattern)
    end
    assert.truthy(message_of(function() experimental.make_csv_dataset(path, 2, { label_name = "z" }) end):find('no column "z"', 1, true))
    os.remove(path)
  end)
end)

describe("Discretization", function()
  it("puts NaN into the last bin, as Keras 3.15 does", function()
    local layer = layers.Discretization { bin_boundaries = { 0.3, 2 } }
    assert.same({ 2, 1, 0, 2, 1 }, layer(flow.tensor { 0 / 0, 1, -1, 2, 0.3 }):totable())
  end)
end)

describe("an iterator", function()
  it("has get_next, which raises at the end", function()
    local iterator = Dataset.range(1):iter()
    assert.equal(0, iterator:get_next():item())
    assert.truthy(message_of(function() iterator:get_next() end):find("no more elements", 1, true))
    local optional = flow.data.Dataset.from_tensor_slices { flow.tensor { 1 }, flow.tensor { 2 } }:iter()
    local one, none = optional:get_next_as_optional(), optional:get_next_as_optional()
    assert.same({ true, false }, { one:has_value(), none:has_value() })
    assert.equal(2, select(2, one:get_value()):item())
    assert.truthy(message_of(function() none:get_value() end):find("no more elements", 1, true))
    local strategy = flow.distribute.get_strategy()
    local divided = strategy:experimental_distribute_dataset(flow.data.Dataset.range(2):batch(2)):iter()
    assert.same({ 0, 1 }, divided:get_next_as_optional():get_value():totable())
    assert.falsy(divided:get_next_as_optional():has_value())
    assert.truthy(message_of(function() divided:get_next() end):find("no more elements", 1, true))
  end)
end)

describe("map of no elements that are texts", function()
  it("is a data set of no elements", function()
    local none = Dataset.from_tensor_slices { { "a", "b" } }:take(0)
    local sized = none:map(function(text) return flow.tensor { #text } end)
    assert.same({ 0, "float32" }, { sized:cardinality(), sized.element_spec[1].dtype })
    local read = none:map(function(path) return flow.image.resize(flow.image.decode_jpeg(flow.io.read_file(path)), { 8, 8 }) end)
    local count = 0
    for _ in read:batch(2):iter() do count = count + 1 end
    assert.equal(0, count)
  end)
end)

describe("a layer of a script", function()
  it("is called on tensors by name, in models and on values, and saved so", function()
    local Sum = layers.Layer:extend "NamedSum"
    function Sum:init() self.dense = layers.Dense(2, { kernel_initializer = "ones" }) end
    function Sum:build(shapes) self.seen = shapes.wage end
    function Sum:call(x, options) return self.dense(x.age) + x.wage * (options.training and 1 or 2) end
    local layer = Sum()
    assert.same({ { 5, 5 } }, layer { age = flow.ones { 1, 3 }, wage = flow.ones { 1, 2 } }:totable())
    assert.same({ 1, 2 }, layer.seen)
    assert.same({ { 4, 4 } }, layer({ age = flow.ones { 1, 3 }, wage = flow.ones { 1, 2 } }, { training = true }):totable())
    local inputs = { age = flow.Input({ 3 }, { name = "age" }), wage = flow.Input({ 2 }, { name = "wage" }) }
    local model = flow.Model { inputs = inputs, outputs = Sum()(inputs) }
    local path = support.path(".keras")
    model:save(path)
    local again = flow.load_model(path, { custom_objects = { NamedSum = Sum } })
    os.remove(path)
    local x = { age = flow.arange(6):reshape { 2, 3 }:to "float32", wage = flow.ones { 2, 2 } }
    assert.same({ { 5, 5 }, { 14, 14 } }, model:predict(x, { verbose = 0 }):totable())
    assert.same({ { 5, 5 }, { 14, 14 } }, again:predict(x, { verbose = 0 }):totable())
    model:compile { optimizer = "sgd", loss = "mse" }
    assert.equal(2, #model:fit(x, flow.zeros { 2, 2 }, { epochs = 2, verbose = 0 }).history.loss)
  end)

  it("that is a stack whose first layer takes texts is called on an input of texts", function()
    local encoder = flow.Sequential { layers.StringLookup { vocabulary = { "a", "b" }, num_oov_indices = 0 }, layers.Embedding(2, 3) }
    local input = flow.Input({}, { dtype = "string" })
    local model = flow.Model { inputs = input, outputs = encoder(input) }
    assert.same({ 2, 3 }, model:predict({ "a", "b" }, { verbose = 0 }).shape)
  end)
end)

-- What tf.audio.encode_wav makes of [[0.5, -0.25], [-1, 0.999], [0.1, 0.2]] at 16,000 samples a second.
local SOUND = "RIFF" .. "\48\0\0\0" .. "WAVEfmt " .. "\16\0\0\0" .. "\1\0\2\0" .. "\128\62\0\0" .. "\0\250\0\0" .. "\4\0\16\0" .. "data"
  .. "\12\0\0\0" .. "\0\64\0\224" .. "\0\128\223\127" .. "\205\12\154\25"

describe("flow.audio.decode_wav", function()
  it("is as tf.audio.decode_wav", function()
    local sound, rate = flow.audio.decode_wav(SOUND)
    assert.equal(16000, rate)
    assert.same({ { 0.5, -0.25 }, { -1, 0.998992919921875 }, { 0.100006103515625, 0.20001220703125 } }, sound:totable())
    assert.same({ { 0.5, -0.25, -0.25 }, { -1, 0.998992919921875, 0.998992919921875 },
      { 0.100006103515625, 0.20001220703125, 0.20001220703125 }, { 0, 0, 0 } }, (flow.audio.decode_wav(SOUND, 3, 4)):totable())
    assert.same({ { 0.5 }, { -1 } }, (flow.audio.decode_wav(SOUND, 1, 2)):totable())
    for n = 0, #SOUND - 13 do assert.is_false((pcall(flow.audio.decode_wav, SOUND:sub(1, n)))) end
  end)
end)

describe("a function of a script", function()
  it("is an activation by the name under which it is registered", function()
    flow.utils.register_keras_serializable("mine", "halved")(function(x) return x * 0.5 end)
    local layer = layers.Dense(2, { activation = "mine>halved", kernel_initializer = "ones" })
    assert.same({ { 1, 1 } }, layer(flow.ones { 1, 2 }):totable())
    flow.utils.custom_object_scope({ tripled = function(x) return x * 3 end }, function()
      assert.same({ { 6, 6 } }, layers.Dense(2, { activation = "tripled", kernel_initializer = "ones" })(flow.ones { 1, 2 }):totable())
    end)
  end)

  it("has the name of the variable that holds it, however it was written", function()
    local make = loadstring "return function(y_true, y_pred) return (y_true - y_pred):square():mean(-1) end"      -- no line names it
    local my_error = make()
    local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = my_error, metrics = { my_error } }
    local logs = model:evaluate(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0 })
    assert.is_number(logs.my_error)
    assert.equal("my_error", require("flow.saving.compiled").entry(model).loss.config)
  end)
end)
