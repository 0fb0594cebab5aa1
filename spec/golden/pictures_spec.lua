-- pictures_spec.lua: image_dataset_from_directory over the folder `pictures` against Keras: order of files, splits, labels, and
-- every pixel, for all ways to resize.
local support = require "spec.support.init"
local flow = require "flow"
local directories = require "flow.data.directory"
local loader = require("flow.signature").internal(require "flow.data.image_dataset")

local cases = require "spec.golden.pictures"
local root = support.root .. "spec/golden/"
local stored = flow.load_npy(root .. "values/pictures.npy"):totable()
local has_plugin = support.run(support.program .. " doctor"):find("libjpeg%-turbo %d") ~= nil

local function options_of(case)
  return loader.options(root .. "pictures/" .. case.folder, case.options, { verbose = false })
end

-- Paths below the folder `pictures`.
local function relative(paths)
  local names = {}
  for i, path in ipairs(paths) do names[i] = path:match("/spec/golden/pictures/(.*)$") end
  return names
end

-- Labels as Keras hands them out.
local function labels_of(files, options)
  if options.label_mode ~= "categorical" then return files.labels or false end
  local rows = {}
  for i, label in ipairs(files.labels) do
    rows[i] = {}
    for class = 1, #files.class_names do rows[i][class] = class == label + 1 and 1 or 0 end
  end
  return rows
end

-- JPEG and GIF need the plugin; what they are is told by the content, so the misnamed one, too.
local function is_jpeg(path)
  local file = assert(io.open(path, "rb"))
  local magic = file:read(3)
  file:close()
  return magic == "\255\216\255", magic == "GIF"
end

-- Largest and mean difference from the stored values that begin at `offset`.
local function differences(picture, offset)
  local flat = picture:reshape({ picture.size }):totable()
  local largest, sum = 0, 0
  for i = 1, #flat do
    local difference = math.abs(flat[i] - stored[offset + i])
    largest, sum = math.max(largest, difference), sum + difference
  end
  return largest, sum / #flat
end

describe("pictures in folders are listed as by Keras:", function()
  for _, case in ipairs(cases) do
    it(case.name, function()
      local options = options_of(case)
      local sink = flow.log.sink
      flow.log.sink = function() end
      local files = directories.list(options)[1]
      flow.log.sink = sink
      assert.same(case.paths, relative(files.paths))
      assert.same(case.class_names, files.class_names or false)
      assert.same(case.labels or false, labels_of(files, options))
    end)
  end
end)

-- Differences that are meant. Alpha where a file has none is 255; TensorFlow gives pictures of fewer than 8 bits the largest value of so
-- many bits, which is nearly transparent. Grey of 16 bits is made of the upper 8; libpng rounds after the sum.
local function tolerance(case, name)
  local few_bits, deep = name:find("indexed") or name:find("short palette"), name:find("deep")
  if case.options.color_mode == "rgba" and few_bits then return 255 end
  if case.options.color_mode == "grayscale" and deep then return 1.01 end
  return 0.01
end

describe("pictures have the values that Keras gives them:", function()
  for _, case in ipairs(cases) do
    if case.offset then
      it(case.name, function()
        local o, offset = case.options, case.offset
        for _, name in ipairs(case.decoded or case.paths) do
          local path = root .. "pictures/" .. name
          local jpeg, gif = is_jpeg(path)
          local channels = flow.image.color_modes[o.color_mode or "rgb"]
          if has_plugin or not (jpeg or gif) then
            local picture = flow.image.load(path, { size = o.image_size, color_mode = o.color_mode, interpolation = o.interpolation,
              crop_to_aspect_ratio = o.crop_to_aspect_ratio, pad_to_aspect_ratio = o.pad_to_aspect_ratio })
            assert.same({ o.image_size[1], o.image_size[2], channels }, picture.shape)
            local largest, mean = differences(picture, offset)
            local good = jpeg and mean <= 3 or largest <= tolerance(case, name)
            assert.is_true(good, ("%s: off by at most %g, on average %g"):format(name, largest, mean))
          end
          offset = offset + o.image_size[1] * o.image_size[2] * channels
        end
      end)
    end
  end
end)

describe("datasets of pictures have Keras' dtype, and its values where it is uint8:", function()
  for _, case in ipairs(cases) do
    if case.dtype then
      it(case.name, function()
        local ds = flow.image_dataset_from_directory(root .. "pictures/" .. case.folder, case.options,
          { labels = false, batch_size = false, verbose = false })
        assert.equal(case.dtype, ds.element_spec[1].dtype)
        if case.dtype ~= "uint8" then return end
        if not has_plugin then return pending("the plugin for JPEG and GIF images is not built") end
        local offset, index = case.offset, 0
        for picture in ds:iter() do
          index = index + 1
          local path = root .. "pictures/" .. case.paths[index]
          local largest, mean = differences(picture, offset)
          assert.is_true(is_jpeg(path) and mean <= 3 or largest == 0, ("%s: off by at most %g"):format(path, largest))
          offset = offset + picture.size
        end
        assert.equal(#case.paths, index)
      end)
    end
  end
end)
