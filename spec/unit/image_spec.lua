-- image_spec.lua: flow.image: pictures from files and back, other sizes, and what is said about files that are not pictures.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

local function folder_of(path) return path:match("^(.*)/[^/]*$") end
local folder = folder_of(support.file("marker", ""))
local has_plugin = support.run(support.program .. " doctor"):find("libjpeg%-turbo %d") ~= nil

local function says(text, f, ...)
  local count, arguments = select("#", ...), { ... }
  local message = message_of(function() local _ = f(unpack(arguments, 1, count)) end)
  assert.truthy(message:find(text, 1, true), message)
end

-- Slopes in each channel, 0 to 255.
local function drawing(height, width, channels)
  local y, x = flow.arange(height):reshape { height, 1, 1 }, flow.arange(width):reshape { 1, width, 1 }
  local c = flow.arange(channels):reshape { 1, 1, channels }
  return ((y * 2 + x * 3 + c * 40):to("float32")):to("uint8")
end

local function largest_difference(a, b)
  return (a:to("float32") - b:to("float32")):abs():max():item()
end

describe("flow.image", function()
  it("has a gradient where it resizes floats: each pixel of a picture twice as wide and high counts for four", function()
    local x, tape = flow.random.uniform({ 1, 4, 5, 2 }, { seed = 1 }), flow.GradientTape()
    tape:watch(x)
    local y
    local sum = tape:record(function()
      y = flow.image.resize(x, { 8, 10 })
      return flow.sum(y)
    end)
    assert.is_true(flow.max(flow.abs(y - flow.image.resize(x, { 8, 10 }))):item() < 1e-6)
    assert.is_true(flow.max(flow.abs(tape:gradient(sum, x) - 4)):item() < 1e-5)
  end)

  it("resizes in traces and in maps as it does eagerly", function()
    local picture = drawing(9, 14, 3)
    for _, options in ipairs { {}, { interpolation = "nearest" }, { crop_to_aspect_ratio = true }, { antialias = true } } do
      local eager = flow.image.resize(picture, { 5, 7 }, options)
      assert.equal("float32", eager.dtype)
      local traced = flow.fn(function(x) return flow.image.resize(x, { 5, 7 }, options) end)
      assert.is_true(largest_difference(eager, traced(picture)) < 1e-3)
      local mapped = flow.data.Dataset.from_tensor_slices(picture:expand_dims(1)):map(function(x)
        return flow.image.resize(x, { 5, 7 }, options)
      end)
      for x in mapped:iter() do assert.is_true(largest_difference(eager, x) < 1e-3) end
    end
  end)

  it("saves and loads without loss as PNG and BMP", function()
    for _, name in ipairs { "a.png", "a.bmp", "a.PNG" } do
      local path = folder .. "/" .. name
      local picture = drawing(9, 14, 3)
      flow.image.save(path, picture)
      local loaded = flow.image.load(path)
      assert.same({ 9, 14, 3 }, loaded.shape)
      assert.equal("uint8", loaded.dtype)
      assert.equal(0, largest_difference(picture, loaded))
    end
  end)

  it("saves and loads JPEG, better with more quality", function()
    if not has_plugin then return pending("without the image plugin") end
    local picture, path = drawing(32, 40, 3), folder .. "/a.jpg"
    local function difference(quality)
      flow.image.save(path, picture, { quality = quality })
      return largest_difference(picture, flow.image.load(path))
    end
    assert.is_true(difference(100) <= 6)
    assert.is_true(difference(5) > 6)
    says("JPEG has no alpha", flow.image.save, path, drawing(4, 4, 4))
    says("1 or 3 channels, not 4", flow.image.load, path, { color_mode = "rgba" })
  end)

  it("gives the channels that are asked for", function()
    local path = folder .. "/alpha.png"
    flow.image.save(path, drawing(5, 6, 4))
    assert.same({ 5, 6, 3 }, flow.image.load(path).shape)
    assert.same({ 5, 6, 4 }, flow.image.load(path, { channels = 0 }).shape)
    assert.same({ 5, 6, 4 }, flow.image.load(path, { color_mode = "rgba" }).shape)
    assert.same({ 5, 6, 1 }, flow.image.load(path, { color_mode = "grayscale" }).shape)
    says('color_mode is "rgb", "rgba" or "grayscale", got the string "cmyk"', flow.image.load, path, { color_mode = "cmyk" })
    says("channels is 1, 3 or 4", flow.image.load, path, { channels = 2 })
    says("not both", flow.image.load, path, { channels = 3, color_mode = "rgb" })
  end)

  it("rounds and limits what it saves, and takes pictures without channels", function()
    local path = folder .. "/grey.png"
    flow.image.save(path, flow.tensor { { -3, 0.4, 0.6 }, { 254.6, 300, 0 / 0 } })
    assert.same({ { { 0 }, { 0 }, { 1 } }, { { 255 }, { 255 }, { 0 } } }, flow.image.load(path, { channels = 1 }):totable())
    says("got {2, 3, 2}", flow.image.save, path, flow.zeros { 2, 3, 2 })
    says("must end in .jpg, .jpeg, .png or .bmp", flow.image.save, folder .. "/a.tiff", flow.zeros { 2, 3 })
    says("quality is a whole number from 1 to 100", flow.image.save, path, flow.zeros { 2, 3 }, { quality = 0 })
  end)

  it("resizes", function()
    local picture = flow.tensor({ { { 0 }, { 10 } }, { { 20 }, { 50 } } }, { dtype = "uint8" })
    local expected = { { { 0 }, { 5 }, { 10 } }, { { 10 }, { 20 }, { 30 } }, { { 20 }, { 35 }, { 50 } } }
    local resized = flow.image.resize(picture, 3)
    assert.equal("float32", resized.dtype)
    assert.is_true(largest_difference(resized, flow.tensor(expected)) < 1e-4)
    assert.same({ 4, 3, 5, 3 }, flow.image.resize(flow.zeros { 4, 7, 8, 3 }, { 3, 5 }).shape)
    -- A line to a column: the height that the width asks for is larger than any int.
    local line = flow.ones { 1, 3000000, 1 }
    assert.equal(1000, flow.image.resize(line, { 1000, 1 }, { crop_to_aspect_ratio = true }):sum():item())
    assert.equal(1, flow.image.resize(line, { 1000, 1 }, { pad_to_aspect_ratio = true }):sum():item())
    local path = folder .. "/size.png"
    flow.image.save(path, drawing(9, 14, 3))
    assert.same({ 6, 4, 3 }, flow.image.load(path, { size = { 6, 4 }, interpolation = "Area", crop_to_aspect_ratio = true }).shape)
    says("interpolation is one of bilinear, nearest", flow.image.resize, picture, 3, { interpolation = "cubic" })
    says("the size is {height, width}", flow.image.resize, picture, { 1, 2, 3 })
    says("whole number from 1, got the number 0", flow.image.resize, picture, 0)
    says("only one of crop_to_aspect_ratio and pad", flow.image.resize, picture, 2,
      { crop_to_aspect_ratio = true, pad_to_aspect_ratio = true })
    says("got shape {2}", flow.image.resize, flow.zeros { 2 }, 2)
  end)

  it("keeps the middle or pads with zeros", function()
    local wide = flow.arange(6):to("float32"):reshape { 1, 6, 1 } + flow.zeros { 2, 6, 1 }
    local cropped = flow.image.resize(wide, { 2, 2 }, { crop_to_aspect_ratio = true })
    assert.same({ { { 2 }, { 3 } }, { { 2 }, { 3 } } }, cropped:totable())
    local padded = flow.image.resize(flow.ones { 2, 6, 1 }, { 6, 6 }, { pad_to_aspect_ratio = true })
    assert.same({ 0, 0, 6, 6, 0, 0 }, padded:sum(2):reshape({ 6 }):totable())
  end)

  it("leaves transparent pixels of a GIF black, as TensorFlow does", function()
    if not has_plugin then return pending("without the image plugin") end
    local screen, palette = "GIF89a\2\0\1\0\128\0\0", "\10\20\30\255\0\0"
    local frame = ",\0\0\0\0\2\0\1\0\0\2\2\68\10\0;"      -- the colours 0 and 1
    local function control(flags, index) return ("!\249\4%s\0\0%s\0"):format(string.char(flags), string.char(index)) end
    local function pixels(before) return flow.image.decode(screen .. palette .. before .. frame):totable()[1] end
    assert.same({ { 10, 20, 30 }, { 255, 0, 0 } }, pixels "")
    assert.same({ { 10, 20, 30 }, { 255, 0, 0 } }, pixels(control(0, 1)))
    assert.same({ { 0, 0, 0 }, { 255, 0, 0 } }, pixels(control(1, 0)))
    assert.same({ { 10, 20, 30 }, { 0, 0, 0 } }, pixels(control(1, 1)))
    assert.same({ { 10, 20, 30 }, { 255, 0, 0 } }, pixels(control(1, 9)))
  end)

  it("names files that are not pictures", function()
    local text = support.file("a.jpg", "no picture at all")
    says(text .. ": unknown image format: JPEG, PNG, GIF or BMP is expected, the data begins with 6e 6f 20 70", flow.image.load, text)
    local empty = support.file("a.png", "")
    says(empty .. ": the picture is empty", flow.image.load, empty)
    says("cannot open " .. folder .. "/none.png", flow.image.load, folder .. "/none.png")
    local path = folder .. "/cut.png"
    flow.image.save(path, drawing(20, 20, 3))
    local contents = io.open(path, "rb"):read("*a")
    assert.same({ 20, 20, 3 }, flow.image.decode(contents).shape)
    says("the PNG data ends early", flow.image.decode, contents:sub(1, -20))
    says("wrong checksum of chunk IDAT", flow.image.decode, contents:sub(1, 50) .. "x" .. contents:sub(52))
    says("damaged: no chunk begins at byte 33", flow.image.decode, contents:sub(1, 37) .. "\n\27[D" .. contents:sub(42))
    says("a path is a string, got the number 3", flow.image.load, 3)
    says("are a string, got nil", flow.image.decode)
    says('unknown option "chanels"; did you mean "channels"?', flow.image.load, path, { chanels = 3 })
    says('flow.image has no "rotate"', function() return flow.image.rotate end)
  end)
end)
