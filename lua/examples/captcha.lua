-- captcha.lua: a net reads rows of two to four digits, without being told where each digit is, as in Keras' example "OCR model for reading
-- Captchas": columns of a picture as steps of an LSTM, the CTC loss as a layer at the end, and ctc_decode, which makes texts of what the
-- net says of each step. The rows are put together from the digits that ship with the examples.
--
--   flowlua lua/examples/captcha.lua               0.81 of 300 rows are read without a mistake after 8 epochs
local flow = require "flow"
local layers, ops = flow.layers, flow.keras.ops

local here = arg[0]:match("^(.*/)[^/]*$") or "./"
local options = flow.args { epochs = 8, rows = 3000, batch_size = 32, seed = 1, path = here .. "digits" }
flow.set_random_seed(options.seed)
math.randomseed(options.seed)

local MOST, PAD, CLASSES = 4, -1, 10
local x_train, y_train, x_test, y_test = flow.datasets.mnist.load_data { path = options.path }

-- Rows of digits: pictures {rows, width, height, 1}, the width first since it is the time, and labels {rows, MOST}, filled up with PAD.
local function make_rows(x, y, count)
  local space, digits = flow.zeros({ #x, 28, 28 }, { dtype = "uint8" })[{ { 1, 1 } }], y:totable()
  local all, places, labels = flow.concat({ x, space }, 1), {}, {}
  for i = 1, count do
    places[i], labels[i] = {}, {}
    local length = math.random(2, MOST)
    for k = 1, MOST do
      local place = k <= length and math.random(#x) or #x + 1
      places[i][k], labels[i][k] = place, digits[place] or PAD
    end
  end
  local pictures = flow.take(all, flow.tensor(places, { dtype = "int32" }), 1):to "float32" / 255      -- {rows, MOST, height, width}
  pictures = pictures:transpose { 1, 2, 4, 3 }:reshape { count, MOST * 28, 28, 1 }
  return pictures, flow.tensor(labels, { dtype = "int32" })
end
local pictures, labels = make_rows(x_train, y_train, options.rows)
local test_pictures, test_labels = make_rows(x_test, y_test, 300)

---- the model ------------------------------------------------------------------------------------------------------------------

-- Adds the loss and hands the predictions on. The last class is CTC's blank.
local CTCLayer = layers.Layer:extend "CTCLayer"
function CTCLayer:call(y_true, y_pred)
  local label_length = ops.sum(ops.cast(ops.not_equal(y_true, PAD), "int32"), 2)
  local input_length = ops.ones({ ops.shape(y_pred)[1] }, { dtype = "int32" }) * ops.shape(y_pred)[2]
  self:add_loss(ops.ctc_loss(ops.maximum(y_true, 0), ops.log(y_pred + 1e-7), label_length, input_length, { mask_index = CLASSES }):mean())
  return y_pred
end

local image = layers.Input({ MOST * 28, 28, 1 }, { name = "image" })
local label = layers.Input({ MOST }, { name = "label", dtype = "int32" })
local x = layers.Conv2D(16, 3, { activation = "relu", padding = "same" })(image)
x = layers.MaxPooling2D()(x)
x = layers.Conv2D(32, 3, { activation = "relu", padding = "same" })(x)
x = layers.MaxPooling2D()(x)
x = layers.Reshape({ MOST * 7, 7 * 32 })(x)
x = layers.Dense(64, { activation = "relu" })(x)
x = layers.Bidirectional(layers.LSTM(64, { return_sequences = true, dropout = 0.25 }))(x)
local said = layers.Dense(CLASSES + 1, { activation = "softmax", name = "said" })(x)
local model = flow.Model { inputs = { image, label }, outputs = CTCLayer { name = "ctc_loss" }(label, said) }
model:compile { optimizer = flow.optimizers.Adam(0.002) }
model:fit({ image = pictures, label = labels }, { epochs = options.epochs, batch_size = options.batch_size, verbose = 2 })

---- reading --------------------------------------------------------------------------------------------------------------------

local reader = flow.Model(model.inputs[1], model:get_layer("said").output)      -- the same weights, without the labels
local steps = reader:predict(test_pictures, { verbose = 0 })
local decoded = ops.ctc_decode(steps, ops.ones({ #steps }, { dtype = "int32" }) * MOST * 7, { mask_index = CLASSES })[1]

-- The digits of a row as a text.
local function text_of(row)
  local text = {}
  for _, digit in ipairs(row) do text[#text + 1] = digit ~= PAD and digit or nil end
  return table.concat(text)
end
local right, read, wanted = 0, decoded:totable(), test_labels:totable()
for i = 1, #read do
  if text_of(read[i]) == text_of(wanted[i]) then right = right + 1 end
  if i <= 5 then print(("%-4s was read as %s"):format(text_of(wanted[i]), text_of(read[i]))) end
end
print(("rows read without a mistake: %.4f"):format(right / #read))
