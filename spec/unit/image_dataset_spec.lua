-- image_dataset_spec.lua: flow.image_dataset_from_directory: its options, what it prints, its errors, and the batches. The order of
-- files and the pixels are compared with Keras in spec/golden/pictures_spec.lua.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

local from_directory = flow.image_dataset_from_directory

-- A folder with `count` PNG pictures of each kind; picture i is i everywhere.
local function pictures(kinds, count)
  local folder = support.file("marker", ""):match("^(.*)/[^/]*$")
  for k, kind in ipairs(kinds) do
    support.run(("mkdir '%s/%s'"):format(folder, kind))
    for i = 1, count do
      flow.image.save(("%s/%s/%02d.png"):format(folder, kind, i), flow.full({ 6, 5, 3 }, 10 * k + i))
    end
  end
  return folder
end

local folder = pictures({ "ant", "bee" }, 5)

-- Calls f and collects what it prints.
local function printed(f, ...)
  local lines, sink = {}, flow.log.sink
  flow.log.sink = function(_, text) lines[#lines + 1] = text end
  local ok, result = pcall(f, ...)
  flow.log.sink = sink
  if not ok then error(result, 0) end
  return result, table.concat(lines)
end

local function quiet(...)
  return (printed(from_directory, ...))
end

local function says(text, ...)
  local count, arguments = select("#", ...), { ... }
  local message = message_of(function() local _ = quiet(unpack(arguments, 1, count)) end)
  assert.truthy(message:find(text, 1, true), message)
end

-- Labels and first values of all elements.
local function all(dataset)
  local labels, values = {}, {}
  for x, y in dataset:iter() do
    for i = 1, x.shape[1] do
      values[#values + 1] = x[{ i, 1, 1, 1 }]:item()
      if y then labels[#labels + 1] = y[i]:totable() end
    end
  end
  return values, labels
end

describe("image_dataset_from_directory", function()
  it("gives batches of pictures and labels", function()
    local dataset, text = printed(from_directory, folder, { image_size = { 4, 3 }, batch_size = 4 }, { shuffle = false })
    assert.equal("Found 10 files belonging to 2 classes.\n", text)
    assert.same({ "ant", "bee" }, dataset.class_names)
    assert.equal(10, #dataset.file_paths)
    assert.equal(folder .. "/ant/01.png", dataset.file_paths[1])
    local shapes = {}
    for x, y in dataset:iter() do
      shapes[#shapes + 1] = x.shape
      assert.equal("float32", x.dtype)
      assert.equal("int32", y.dtype)
    end
    assert.same({ { 4, 4, 3, 3 }, { 4, 4, 3, 3 }, { 2, 4, 3, 3 } }, shapes)
    local values, labels = all(dataset)
    assert.same({ 11, 12, 13, 14, 15, 21, 22, 23, 24, 25 }, values)
    assert.same({ 0, 0, 0, 0, 0, 1, 1, 1, 1, 1 }, labels)
    assert.same({ "ant", "bee" }, dataset:take(1):prefetch(1).class_names)
  end)

  it("shuffles each pass again, reproducibly", function()
    local options = { image_size = 3, batch_size = 10, seed = 5 }
    local a, b = quiet(folder, options), quiet(folder, options)
    local first, second = all(a), all(a)
    assert.not_same(first, second)
    assert.same(first, (all(b)))
    table.sort(first)
    assert.same({ 11, 12, 13, 14, 15, 21, 22, 23, 24, 25 }, first)
  end)

  it("splits", function()
    local options = { image_size = 3, seed = 5, validation_split = 0.3 }
    local train, text = printed(from_directory, folder, options, { subset = "training", verbose = false })
    assert.equal("Using 7 files for training.\n", text)
    local val = quiet(folder, options, { subset = "validation" })
    local both, both_text = printed(from_directory, folder, options, { subset = "both" })
    assert.equal("Found 10 files belonging to 2 classes.\nUsing 7 files for training.\nUsing 3 files for validation.\n", both_text)
    assert.same(train.file_paths, both[1].file_paths)
    assert.same(val.file_paths, both[2].file_paths)
    assert.equal(7, #train.file_paths)
    assert.same((all(both[2])), (all(both[2])))      -- the second one is never shuffled
  end)

  it("gives labels in every form", function()
    local function labels(options)
      return select(2, all(quiet(folder, { image_size = 3, shuffle = false }, options)))
    end
    assert.same({ { 0 }, { 0 }, { 0 }, { 0 }, { 0 }, { 1 }, { 1 }, { 1 }, { 1 }, { 1 } }, labels { label_mode = "binary" })
    assert.same({ 0, 1 }, labels({ label_mode = "categorical" })[6])
    assert.same({ 9, 8, 7, 6, 5, 4, 3, 2, 1, 0 }, labels { labels = { 9, 8, 7, 6, 5, 4, 3, 2, 1, 0 } })
    assert.same({}, labels { labels = false })
    assert.same({}, labels { label_mode = false })
    assert.same({ "0", "1", "12" }, quiet(folder, { labels = { 12, 1, 0, 12, 1, 0, 1, 1, 1, 1 } }).class_names)
    local swapped = quiet(folder, { class_names = { "bee", "ant" }, shuffle = false, image_size = 3 })
    assert.same({ 21, 22, 23, 24, 25, 11, 12, 13, 14, 15 }, (all(swapped)))
  end)

  it("gives single pictures without a batch size, and other channels", function()
    local dataset = quiet(folder, { batch_size = false, image_size = { 4, 3 }, color_mode = "grayscale", labels = false })
    for x in dataset:iter() do assert.same({ 4, 3, 1 }, x.shape) end
    assert.same({ 10, 4, 3, 4 }, quiet(folder, { image_size = { 4, 3 }, color_mode = "rgba" }):iter()().shape)
  end)

  it("names broken pictures, or leaves them out", function()
    local broken = pictures({ "a" }, 3)
    support.run(("head -c 60 '%s/a/02.png' > '%s/a/x' && mv '%s/a/x' '%s/a/02.png'"):format(broken, broken, broken, broken))
    local options = { shuffle = false, image_size = 3, labels = false }
    local message = message_of(function() all(quiet(broken, options)) end)
    assert.truthy(message:find(broken .. "/a/02.png: the PNG data ends early", 1, true), message)
    assert.truthy(message:find('; on_error = "skip" leaves out what cannot be read', 1, true), message)
    assert.same({ 11, 13 }, (all(quiet(broken, options, { on_error = "skip" }))))
  end)

  it("explains misuse", function()
    says("image_dataset_from_directory: cannot list the directory /nowhere: No such file or directory", "/nowhere")
    says("cannot list the directory /nowhere", "/nowhere", { labels = false })
    local empty = support.file("marker", ""):match("^(.*)/[^/]*$")
    says("no pictures found in directory " .. empty .. ". Allowed formats: (.bmp, .gif, .jpeg, .jpg, .png); each class is "
      .. "a folder in it, labels = false takes a folder without classes", empty)
    says("Allowed formats: (.bmp, .gif, .jpeg, .jpg, .png)", empty, { labels = false })
    says("a path is a string, got nil", nil)
    says("validation_split is a number between 0 and 1, got the number 1.5", folder, { validation_split = 1.5, subset = "both", seed = 1 })
    says("if subset is set, validation_split must be set, and inversely", folder, { subset = "training" })
    says("if subset is set, validation_split must be set, and inversely", folder, { validation_split = 0.2 })
    says('subset is one of "training", "validation", "both"; got', folder, { validation_split = 0.2, subset = "test" })
    says("needs a seed, so that training and validation do not overlap", folder, { validation_split = 0.2, subset = "both" })
    says("no training pictures found", pictures({ "a" }, 1), { validation_split = 0.2, subset = "both", seed = 1 })
    says('label_mode is one of "int", "categorical", "binary" or false; got the string "one"', folder, { label_mode = "one" })
    says('label_mode "binary" needs exactly 2 classes, got {ant}', folder, { label_mode = "binary", class_names = { "ant" } })
    says('color_mode is one of "rgb", "rgba", "grayscale"', folder, { color_mode = "cmyk" })
    says("image_size is {height, width}", folder, { image_size = { 1, 2, 3 } })
    says("interpolation is one of bilinear", folder, { interpolation = "cubic" })
    says("expected {ant, bee} or some of them, got {ant, cat}", folder, { class_names = { "ant", "cat" } })
    says('class_names can only be given with labels = "inferred"', folder, { class_names = { "ant" }, labels = false })
    says("3 labels were given, 10 pictures found", folder, { labels = { 1, 2, 3 } })
    says("only one of crop_to_aspect_ratio and pad_to_aspect_ratio", folder, { crop_to_aspect_ratio = true, pad_to_aspect_ratio = true })
    says('format is one of "tf"', folder, { format = "grain" })
    says("data_format", folder, { data_format = "channels_first" })
    says('on_error is one of "raise", "skip"', folder, { on_error = "ignore" })
    says("batch_size is a whole number from 1", folder, { batch_size = 0 })
    says("seed is a whole number from 0 to 4294967295", folder, { seed = -1 })
    says('unknown option "image_sise"; did you mean "image_size"?', folder, { image_sise = 3 })
  end)

  it("follows links only when asked, and not in circles", function()
    local linked = pictures({ "a" }, 2)
    support.run(("ln -s '%s/bee' '%s/a/more'; ln -s '%s/a' '%s/a/loop'"):format(folder, linked, linked, linked))
    assert.equal(2, #quiet(linked).file_paths)
    assert.equal(7, #quiet(linked, { follow_links = true }).file_paths)
  end)

  it("carries the example: flowers are drawn and learned", function()
    if not support.run(support.program .. " doctor"):find("libjpeg%-turbo %d") then return pending("without the image plugin") end
    local path, examples = support.file("marker", ""):match("^(.*)/[^/]*$"), support.root .. "lua/examples/"
    local output, code = support.run(("%s %smake_flowers.lua --path %s --images-per-class 4"):format(support.program, examples, path))
    assert.equal("20 pictures of 5 kinds of flowers in " .. path .. "\n", output)
    assert.equal(0, code)
    local command = "%s %sflowers.lua --path %s --epochs 1 --image-size 16 --batch-size 8 --job-dir %s"
    local results = support.file("results", ""):match("^(.*)/[^/]*$")
    output, code = support.run(command:format(support.program, examples, path, results))
    assert.equal(0, code, output)
    assert.truthy(output:find("Using 16 files for training.", 1, true), output)
    assert.truthy(output:find("daisy, dandelion, rose, sunflower, tulip", 1, true), output)
    assert.truthy(output:find("val_accuracy: ", 1, true), output)
    assert.equal("1", (support.run("grep -c '</svg>' " .. results .. "/history.svg"):gsub("%s", "")))
    assert.same({ "daisy", "dandelion", "rose", "sunflower", "tulip" }, flow.load_model(results .. "/flowers.keras").class_names)
  end)
end)
