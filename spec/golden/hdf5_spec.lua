-- hdf5_spec.lua: HDF5 files of h5py and Keras, read with exact values, and files written here, which are those that h5py, zipfile and
-- Keras found right (spec/golden/hdf5.py).
local support = require "spec.support.init"
local tensor_file = require "flow.saving.tensor_file"

-- What h5py finds in a file.
local values = setmetatable({}, { __index = function(_, name) return require("spec.golden.hdf5." .. name:match("([%w_]+)%.[^/]*$")) end })
local files = require "spec.golden.hdf5_files"
local root = support.root .. "spec/golden/"
local has_plugin = support.run(support.program .. " doctor"):find("libhdf5 %d") ~= nil

local function fails(f, part)
  local message = support.message_of(f)
  assert.truthy(message:find(part, 1, true), message)
end

local function sorted(list)
  table.sort(list)
  return list
end

local function flatten(value, into)
  if type(value) ~= "table" then into[#into + 1] = type(value) == "boolean" and (value and 1 or 0) or tonumber(value) end
  for _, item in ipairs(type(value) == "table" and value or {}) do flatten(item, into) end
  return into
end

local function expect_tensor(file, name, expected)
  local numbers, total = flatten(file:read(name):totable(), {}), 0
  assert.same(expected.shape, file:shape(name))
  for i, number in ipairs(expected.first) do assert.equal(number, numbers[i], name) end
  for _, number in ipairs(numbers) do total = total + number end
  assert.equal(expected.sum, total, name)
end

local function expect_file(file, expected)
  local names, found, notes = {}, {}, {}
  for name in pairs(expected.tensors) do names[#names + 1] = name end
  for i = 1, file.count do found[i] = file:name_of(i) end
  assert.same(sorted(names), sorted(found))
  for name, facts in pairs(expected.tensors) do
    assert.equal(facts.dtype, file:dtype(name), name)
    expect_tensor(file, name, facts)
  end
  for _, note in ipairs(expected.notes) do notes[note[1] .. "|" .. note[2]] = note[3] end
  for _, note in ipairs(file:notes()) do
    local key = note.path .. "|" .. note.key
    if notes[key] then assert.equal(notes[key], file:note(note.path, note.key), key) end
    notes[key] = nil
  end
  assert.is_nil(next(notes))
  assert.same(sorted(expected.groups), sorted(file:groups()))
end

local function open(name, options)
  return tensor_file.open(root .. name, name:find("%.keras$") and "model.weights.h5" or nil, options)
end

local function contents(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read("*a")
  file:close()
  return bytes
end

describe("HDF5", function()
  for _, name in ipairs { "hdf5/plain.h5", "hdf5/keras.weights.h5", "keras/dense_adam_trained_jax.keras", "keras/flowers_small.keras",
                          "keras/func.keras", "keras/mnist_small_compiled.keras" } do
    it("reads " .. name .. " as h5py does", function()
      local file = open(name)
      expect_file(file, values[name])
      file:close()
    end)
  end

  for name, part in pairs { soft_link = "a soft link", texts = "values of variable length" } do
    it("names what is not a tensor: " .. name, function()
      fails(function() open("hdf5/" .. name .. ".h5") end, part .. ", which Keras does not write and flowlua does not read")
    end)
  end

  for name, part in pairs { chunked = "a chunked dataset", gzip = "a compressed dataset", latest = "an object header of the new style",
                            big_endian = "big-endian numbers", int16 = "integers of another size",
                            unwritten = "never written", utf8_names = "a group of the new style" } do
    it("names what is beyond it: " .. name, function()
      fails(function() open("hdf5/" .. name .. ".h5") end, part)
      fails(function() open("hdf5/" .. name .. ".h5") end, "trusted = true reads it through libhdf5")
    end)
  end

  for _, name in ipairs { "chunked", "gzip", "latest", "big_endian", "int16", "utf8_names" } do
    it("reads it when it is trusted: " .. name, function()
      if not has_plugin then return pending("the plugin hdf5 is not built (libhdf5-dev)") end
      local file = open("hdf5/" .. name .. ".h5", { trusted = true })
      expect_file(file, values["hdf5/" .. name .. ".h5"])
      file:verify()
      file:close()
    end)
  end

  it("reads a compressed member of an archive when it is trusted", function()
    if not has_plugin then return pending("the plugin hdf5 is not built (libhdf5-dev)") end
    fails(function() tensor_file.open(root .. "hdf5/deflated.zip", "model.weights.h5") end, "is compressed")
    local file = tensor_file.open(root .. "hdf5/deflated.zip", "model.weights.h5", { trusted = true })
    expect_file(file, values["hdf5/gzip.h5"])
    file:close()
  end)

  it("says what libhdf5 says of a trusted file that it cannot read", function()
    if not has_plugin then return pending("the plugin hdf5 is not built (libhdf5-dev)") end
    fails(function() open("hdf5/soft_link.h5", { trusted = true }) end, "soft or external link")
    fails(function() open("hdf5/texts.h5", { trusted = true }) end, "that no tensor has")
  end)

  it("writes what h5py, zipfile and Keras found right", function()
    local folder = support.folder()
    files.write(folder, support.root)
    assert.is_true(contents(folder .. "/written.h5") == contents(root .. "hdf5/written.h5"))
    expect_file(tensor_file.open(folder .. "/copied.weights.h5"), values["hdf5/keras.weights.h5"])
    local written = tensor_file.open(folder .. "/written.zip", "model.weights.h5")
    assert.same({ { 0, 1, 2 }, { 3, 4, 100 } }, written:read("dtypes/bfloat16"):totable())
    assert.equal("layer number 299", written:note("many/layer_299/vars", "name"))
    assert.equal(("0123456789"):rep(7000), written:note("empty", "long"))
    written:close()
    os.execute("rm -r " .. folder)
  end)
end)
