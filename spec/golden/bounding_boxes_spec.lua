-- bounding_boxes_spec.lua: boxes are changed as by Keras (bounding_boxes.py), and as the pictures that they belong to.
local support = require "spec.support.init"
local flow = require "flow"

local layers, message_of, B = flow.layers, support.message_of, flow.utils.bounding_boxes
local folder = debug.getinfo(1, "S").source:match("^@(.*)bounding_boxes_spec%.lua$")
local cases = dofile(folder .. "bounding_boxes.lua")

local HEIGHT, WIDTH = 40, 60
local boxes = flow.tensor { { { 10, 20, 30, 38 }, { 0, 0, 5, 5 } }, { { 1, 2, 3, 4 }, { 50, 30, 59, 39 } } }
local labels = flow.tensor({ { 1, 2 }, { 3, 0 } }, { dtype = "int32" })
local images = flow.zeros { 2, HEIGHT, WIDTH, 1 }

local function has(text, part) assert.truthy(tostring(text):find(part, 1, true), tostring(text) .. "\nlacks: " .. part) end

local function assert_case(name, found)
  local case = assert(cases[name], name)
  if type(found) ~= "table" or getmetatable(found) then found = { boxes = found } end
  for key, expected in pairs(case) do
    local values = found[key]:to("float32"):reshape({ -1 }):totable()
    assert.equal(#expected, #values, name)
    for i, x in ipairs(expected) do
      assert.is_true(math.abs(x - values[i]) <= 2e-3 * math.max(1, math.abs(x)),
        ("%s: %s %d is %g, Keras has %g"):format(name, key, i, values[i], x))
    end
  end
end

describe("flow.utils.bounding_boxes", function()
  it("converts formats", function()
    local count = 0
    for name in pairs(cases) do
      local source, target = name:match "^([%l_]+) ([%l_]+)$"
      if source and source ~= "iou" then
        local given = B.convert_format(boxes, "xyxy", source, HEIGHT, WIDTH)
        assert_case(name, B.convert_format(given, source, target, HEIGHT, WIDTH))
        count = count + 1
      end
    end
    assert.equal(25, count)
    assert.equal(4, B.convert_format(boxes:to "int32", "XYXY", "xywh")[1][1][4]:item() - 14)
    assert.equal(0, B.convert_format(flow.zeros { 0, 4 }, "xyxy", "xywh").shape[1])
    assert.same({ 1 }, B.convert_format({ boxes = { { 0, 0, 1, 1 } }, labels = { 1 } }, "xyxy", "xywh").labels)
  end)

  it("clips, crops, pads, turns, and knows of anchors and overlaps", function()
    assert_case("clip", B.clip_to_image_size({ boxes = boxes - 4, labels = labels }, 30, 50))
    assert_case("crop", B.crop(boxes, 3, 12, 20, 30))
    assert_case("pad", B.pad(boxes, 3, 12))
    assert_case("affine", B.affine_transform(boxes, { 30, -75 }, { 0.1, -0.2 }, { 0, 0.3 }, { 1, 1.5 }, { 10, 0 }, { 0, 20 },
      HEIGHT, WIDTH))
    local variance = { 0.1, 0.1, 0.2, 0.2 }
    local deltas = B.encode_box_to_deltas(boxes[2], boxes, "xyxy", "xyxy", { variance = variance })
    assert_case("encode", deltas)
    assert_case("decode", B.decode_deltas_to_boxes(boxes[2], deltas, "xyxy", "xywh", { variance = variance }))
    local levels = B.decode_deltas_to_boxes({ a = boxes[2] }, { a = deltas }, "xyxy", "xywh", { variance = variance })
    assert_case("decode", levels.a)
    assert_case("iou", B.compute_iou(boxes, boxes[1] + 3, "xyxy"))
    assert_case("iou masked", B.compute_iou(boxes[1], flow.concat({ boxes[1] + 1, flow.full({ 1, 4 }, -1) }, 1), "xyxy", true))
    assert_case("ciou", B.compute_ciou(boxes, boxes:flip(2) * 0.5 + 3, "xyxy"))
  end)

  it("says what is wrong", function()
    has(message_of(function() B.convert_format({ { 1, 2, 3, 4 } }, "xyxz", "xyxy") end), 'did you mean "xyxy"')
    has(message_of(function() B.convert_format({ { 1, 2, 3, 4 } }, "xyxy", "rel_xyxy") end), "height and width are needed")
    has(message_of(function() B.convert_format({ { 1, 2, 3 } }, "xyxy", "xywh") end), "four numbers on their last axis")
    has(message_of(function() B.crop(boxes, 1, 1, 2, 2, "xywh") end), 'bounding_box_format is "xyxy" here')
  end)
end)

describe("layers that change pictures", function()
  local function moved(layer, format, transformation)
    local given = { boxes = B.convert_format(boxes, "xyxy", format, HEIGHT, WIDTH), labels = labels }
    if not transformation then return layer { images = images, bounding_boxes = given }.bounding_boxes end
    transformation.input_shape = { 2, HEIGHT, WIDTH, 1 }
    return layer:transform_bounding_boxes(given, transformation)
  end

  it("move boxes as Keras' do", function()
    for _, format in ipairs { "xyxy", "rel_yxyx", "center_xywh" } do
      local function case(name, class, arguments, transformation)
        arguments.bounding_box_format = format
        assert_case(name .. " " .. format, moved(layers[class](arguments), format, transformation))
      end
      case("CenterCrop 20 30", "CenterCrop", { height = 20, width = 30 })
      case("CenterCrop 50 30", "CenterCrop", { height = 50, width = 30 })
      case("Resizing 20 90", "Resizing", { height = 20, width = 90 })
      case("Resizing 20 20 crop", "Resizing", { height = 20, width = 20, crop_to_aspect_ratio = true })
      case("Resizing 50 20 pad", "Resizing", { height = 50, width = 20, pad_to_aspect_ratio = true })
      case("RandomZoom", "RandomZoom", { height_factor = { -0.5, 0.5 } },
        { height_zoom = flow.tensor { { 0.75 }, { 1.25 } }, width_zoom = flow.tensor { { 1.5 }, { 0.5 } } })
      case("RandomTranslation", "RandomTranslation", { height_factor = 0.5, width_factor = 0.5 },
        { right = flow.tensor { { 6 }, { -12 } }, down = flow.tensor { { -5 }, { 3 } } })
    end
    local shares = flow.tensor { { { .1, .2 }, { -.15, .3 }, { .05, -.2 }, { -.1, -.05 } }, { { .2, -.1 }, { .1, .1 }, { -.3, .2 },
      { .25, .15 } } }
    for name, applied in pairs { RandomPerspective = { true, true }, ["RandomPerspective one"] = { false, true } } do
      assert_case(name .. " xyxy", moved(layers.RandomPerspective { bounding_box_format = "xyxy" }, "xyxy",
        { moves = shares, applies = flow.tensor(applied):reshape { 2, 1, 1, 1 } }))
    end
    assert_case("RandomRotation xyxy", moved(layers.RandomRotation(0.5, { bounding_box_format = "xyxy" }), "xyxy",
      { angle = flow.tensor { 30, -75 } }))
  end)

  -- A white box on black pictures is where its box says, to a pixel and what interpolation blurs.
  it("move boxes as they move the pixels, of batches, single pictures and in ds:map", function()
    local top, left, bottom, right = 12, 21, 27, 40
    local picture = flow.zeros { HEIGHT, WIDTH, 1 } + 0
    picture[{ { top + 1, bottom }, { left + 1, right } }] = 255
    local function bounds(x, axis)      -- of the first pixel that is bright, and one after the last
      local bright = x:squeeze(-1):max(axis):gt(127):totable()
      local first, last
      for i, is in ipairs(bright) do
        if is ~= 0 and is ~= false then first, last = first or i - 1, i end
      end
      return first, last
    end
    local function check(layer, result, what)
      local b = B.convert_format(result.bounding_boxes.boxes, layer.bounding_box_format, "xyxy", unpack(result.images.shape, 1, 2))
      local box = b[1]:totable()
      local x1, x2 = bounds(result.images, 1)
      local y1, y2 = bounds(result.images, 2)
      if not x1 then return assert.is_true((box[3] - box[1]) * (box[4] - box[2]) < 12, what) end
      for i, edge in ipairs { x1, y1, x2, y2 } do
        assert.is_true(math.abs(edge - box[i]) <= 2.1, ("%s: edge %d is %g, the box says %g"):format(what, i, edge, box[i]))
      end
      assert.equal(7, result.bounding_boxes.labels[1]:item(), what)
    end
    local list = {
      function(o) return layers.RandomFlip("horizontal_and_vertical", o) end, function(o) return layers.RandomRotation(0.25, o) end,
      function(o) return layers.RandomZoom({ -0.3, 0.3 }, { -0.3, 0.3 }, o) end,
      function(o) return layers.RandomTranslation(0.3, 0.3, o) end, function(o) return layers.RandomShear(0.2, 0.2, o) end,
      function(o) return layers.RandomCrop(30, 45, o) end, function(o) return layers.RandomCrop(45, 50, o) end,
      function(o) return layers.CenterCrop(30, 45, o) end, function(o) return layers.CenterCrop(50, 45, o) end,
      function(o) return layers.Resizing(30, 90, o) end,
    }
    for i, make in ipairs(list) do
      for seed, format in ipairs { "xyxy", "rel_xywh", "center_yxhw" } do
        local options = { bounding_box_format = format }
        if i <= 7 then options.seed = seed end
        if i >= 2 and i <= 5 then options.fill_mode, options.fill_value = "constant", 0 end
        local layer = make(options)
        local box = B.convert_format({ { left, top, right, bottom } }, "xyxy", format, HEIGHT, WIDTH)
        local data = { images = picture, bounding_boxes = { boxes = box, labels = flow.tensor { 7 } } }
        check(layer, layer(data), layer.name .. " " .. format)
        local batch = layer { images = flow.stack({ picture, picture }, 1), bounding_boxes = { boxes = flow.stack({ box, box }, 1),
                              labels = flow.tensor { { 7 }, { 7 } } } }
        check(layer, { images = batch.images[2], bounding_boxes = { boxes = batch.bounding_boxes.boxes[2],
                       labels = batch.bounding_boxes.labels[2] } }, layer.name .. " of a batch")
        local ds = flow.data.Dataset.from_tensor_slices({ picture:expand_dims(1), box:expand_dims(1) }):map(function(x, b)
          local y = layer { images = x, bounding_boxes = { boxes = b, labels = flow.tensor { 7 } } }
          return y.images, y.bounding_boxes.boxes
        end)
        for x, b in ds:iter() do
          check(layer, { images = x, bounding_boxes = { boxes = b, labels = { [1] = flow.tensor(7) } } }, layer.name .. " in ds:map")
        end
      end
    end
  end)

  it("leave boxes alone where they move no pixels, and without training", function()
    local given = { images = images + 1, bounding_boxes = { boxes = boxes, labels = labels } }
    for _, layer in ipairs { layers.RandomBrightness(0.2), layers.RandomContrast(0.5), layers.RandomErasing(1) } do
      assert.same(boxes:totable(), layer(given).bounding_boxes.boxes:totable(), layer.name)
    end
    local flip = layers.RandomFlip("horizontal", { bounding_box_format = "xyxy" })
    assert.equal(given.bounding_boxes, flip(given, { training = false }).bounding_boxes)
    assert.same(boxes:totable(), layers.AugMix { bounding_box_format = "xyxy" }(given).bounding_boxes.boxes:totable())
    local mixed = layers.MixUp { seed = 1 }(given).bounding_boxes
    assert.same(boxes:totable(), mixed.boxes[{ {}, { 1, 2 } }]:totable())
    assert.is_true(mixed.boxes[1][3]:eq(boxes[mixed.labels[1][3]:eq(1):item() and 1 or 2][1]):all():item())
    assert.same({ 2, 4 }, { unpack(mixed.labels.shape) })
    local augment = layers.RandAugment { bounding_box_format = "xyxy", seed = 1, factor = 0.2 }
    assert.same({ 2, 2, 4 }, { unpack(augment(given).bounding_boxes.boxes.shape) })
    local empty = flip { images = images, bounding_boxes = { boxes = flow.zeros { 2, 0, 4 }, labels = flow.zeros { 2, 0 } } }
    assert.equal(0, empty.bounding_boxes.boxes.size)
  end)

  it("keep their format in configs, copies and files", function()
    for _, layer in ipairs { layers.RandomFlip("horizontal", { bounding_box_format = "xywh" }), layers.Resizing(8, 8,
        { bounding_box_format = "xywh" }), layers.RandomTranslation(0.1, 0.1, { bounding_box_format = "xywh" }) } do
      assert.equal("xywh", layer:get_config().bounding_box_format)
      local path = support.folder() .. "/m.keras"
      local model = flow.Sequential { layers.Input { 8, 8, 3 }, layer }
      model:save(path)
      assert.equal("xywh", flow.load_model(path).layers[1].bounding_box_format)
      assert.equal("xywh", flow.models.clone_model(model).layers[1].bounding_box_format)
      if layer.class_name == "Resizing" then      -- that C reads by itself
        assert.same(model(images[{ {}, { 1, 8 }, { 1, 8 } }]:repeat_(3, -1)):totable(),
          flow.models.shared(path):predict(images[{ {}, { 1, 8 }, { 1, 8 } }]:repeat_(3, -1)):totable())
      end
    end
    assert.is_nil(layers.RandomFlip().bounding_box_format)
    assert.is_nil(layers.RandomFlip():get_config().bounding_box_format)
  end)

  it("say what they need", function()
    local given = { images = images, bounding_boxes = { boxes = boxes, labels = labels } }
    has(message_of(function() layers.RandomFlip()(given) end), 'give the layer bounding_box_format = "xyxy"')
    has(message_of(function() layers.RandomFlip("horizontal", { bounding_box_format = "xyxx" }) end), "a format of boxes is one of xyxy")
    has(message_of(function() layers.CenterCrop(2, 2, { bounding_box_format = "xyxy" }) { images = images, bounding_boxes = boxes } end),
      "bounding_boxes is a table { boxes = , labels = }")
    has(message_of(function() layers.RandomElasticTransform(1)(given) end), "bounding_boxes is not supported")
  end)
end)
