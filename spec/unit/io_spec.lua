-- flow.io: files and folders.
local support = require "spec.support.init"
local flow = require "flow"

local function message_of(f, ...)
  local values = { ... }
  return support.message_of(function() f(unpack(values)) end)
end

local function folder()
  local name = support.folder()
  return name
end

local content = support.read

describe("flow.io", function()
  local base
  before_each(function() base = folder() end)
  after_each(function() flow.io.rmtree(base) end)

  it("reads a pipe to its end, and a device that has none as far as a text may be", function()
    local read = ("printf 'one two' | %s %s"):format(support.command, support.file("read.lua", [[
      print(require("flow").io.read_file "/dev/stdin")
    ]]))
    assert.equal("one two\n", support.run(read))
    if not flow.io.exists "/dev/zero" then return pending("there is no /dev/zero") end
    local text = message_of(flow.io.read_file, "/dev/zero")
    assert.truthy(text:find("flow.io.read_file: /dev/zero cannot be read: it is no regular file, and has 1073741824 bytes or more; does it "
      .. "have an end?", 1, true), text)
  end)

  it("makes, lists, moves, copies and removes", function()
    local deep = flow.io.join(base, "a", "b/c")
    flow.io.makedirs(deep)
    flow.io.makedirs(deep .. "/")
    assert.is_true(flow.io.exists(deep) and flow.io.isdir(deep))
    flow.io.write(flow.io.join(deep, "one.txt"), "eins\0zwei")
    assert.are.equal("eins\0zwei", content(deep .. "/one.txt"))
    assert.is_false(flow.io.isdir(deep .. "/one.txt"))
    flow.io.copy(deep .. "/one.txt", base .. "/.two")
    assert.are.same({ ".two", "a" }, flow.io.listdir(base))
    flow.io.rename(base .. "/.two", base .. "/three.txt")
    assert.are.equal("eins\0zwei", content(base .. "/three.txt"))
    assert.are.same({ base .. "/a/b/c/one.txt", base .. "/three.txt" }, flow.io.glob { base .. "/*.txt", base .. "/a/b/*/*" })
    flow.io.remove(base .. "/three.txt")
    assert.is_false(flow.io.exists(base .. "/three.txt"))
    flow.io.rmtree(base .. "/a/")
    assert.are.same({}, flow.io.listdir(base))
  end)

  it("replaces what is there only when asked", function()
    flow.io.write(base .. "/a", "a")
    flow.io.write(base .. "/b", "b")
    for _, name in ipairs { "copy", "rename" } do
      assert.are.equal(("%s: %s/b exists; give overwrite = true to replace it"):format(name, base),
        message_of(flow.io[name], base .. "/a", base .. "/b"))
    end
    assert.are.equal("b", content(base .. "/b"))
    flow.io.copy(base .. "/a", base .. "/b", true)
    assert.are.equal("a", content(base .. "/b"))
    flow.io.write(base .. "/a", "anew")
    flow.io.rename(base .. "/a", base .. "/b", { overwrite = true })
    assert.are.equal("anew", content(base .. "/b"))
    assert.are.same({ "b" }, flow.io.listdir(base))
  end)

  it("removes trees without following links", function()
    flow.io.makedirs(base .. "/kept/inner")
    flow.io.write(base .. "/kept/inner/file", "x")
    flow.io.makedirs(base .. "/gone/inner")
    os.execute(("ln -s %s/kept %s/gone/inner/link; ln -s %s/kept %s/link"):format(base, base, base, base))
    assert.is_truthy(message_of(flow.io.rmtree, base .. "/link"):find("is a link", 1, true))
    assert.is_truthy(message_of(flow.io.rmtree, base .. "/link/"):find("is a link", 1, true))
    flow.io.rmtree(base .. "/gone")
    assert.are.equal("x", content(base .. "/kept/inner/file"))
    flow.io.remove(base .. "/link")
    assert.is_true(flow.io.exists(base .. "/kept/inner/file"))
    assert.are.same({ "kept" }, flow.io.listdir(base))
  end)

  it("refuses to remove what nobody means", function()
    for _, path in ipairs { "/", "//", "/tmp/..", "/." } do
      assert.is_truthy(message_of(flow.io.rmtree, path):find("the root of the file system", 1, true), path)
    end
    assert.are.equal("flow.io.rmtree: the path is empty", message_of(flow.io.rmtree, ""))
    assert.is_truthy(message_of(flow.io.rmtree, base .. "/."):find("ends in .", 1, true))
    flow.io.write(base .. "/file", "")
    assert.is_truthy(message_of(flow.io.rmtree, base .. "/file"):find("is a file", 1, true))
    assert.is_truthy(message_of(flow.io.remove, base):find("is a folder", 1, true))
    local wanted = "cannot make the folder " .. base .. "/file: Not a directory"
    assert.is_truthy(message_of(flow.io.makedirs, base .. "/file/a"):find(wanted, 1, true))
    assert.is_truthy(message_of(flow.io.makedirs, base .. "/file"):find(wanted, 1, true))
    assert.is_truthy(message_of(flow.io.remove, base .. "/none"):find("No such file", 1, true))
  end)

  it("joins as Python's os.path.join", function()
    assert.are.equal("a/b/c", flow.io.join("a", "b/", "c"))
    assert.are.equal("/c/d", flow.io.join("a", "/c", "d"))
    assert.are.equal("gs://bucket/x", flow.io.join("/a", "gs://bucket", "x"))
    assert.are.equal("a/", flow.io.join("a", ""))
    assert.are.equal("", flow.io.join())
  end)

  -- what Python 3.11's os.path says
  it("takes paths apart as os.path.dirname and basename", function()
    for path, parts in pairs {
      ["/a/b"] = { "/a", "b" }, b = { "", "b" }, ["/b"] = { "/", "b" }, ["a/b/"] = { "a/b", "" },
      ["//"] = { "//", "" }, ["a//b"] = { "a", "b" },
      ["gs://bucket/x"] = { "gs://bucket", "x" },
    } do
      assert.same(parts, { flow.io.dirname(path), flow.io.basename(path) })
    end
  end)

  it("finds buckets where they are mounted, and says what to mount", function()
    local before = flow.io.mounts.gs
    finally(function() flow.io.mounts.gs, flow.io.mounts.s3 = before, nil end)
    flow.io.mounts.gs = base
    assert.are.equal(('"gs://photos/a.txt": the bucket is looked for in %s/photos, which does not exist; mount it there, e.g. ' ..
      "gcsfuse photos %s/photos"):format(base, base), message_of(flow.io.write, "gs://photos/a.txt", ""))
    flow.io.makedirs(base .. "/photos")
    flow.io.write("gs://photos/a.txt", "rose")
    assert.are.equal("rose", content(base .. "/photos/a.txt"))
    assert.are.equal(base .. "/photos/x/y", flow.io.path "gs://photos/x/y")
    assert.are.equal(base .. "/photos", flow.io.path "gs://photos/")
    assert.are.same({ "a.txt" }, flow.io.listdir "gs://photos")
    assert.is_truthy(message_of(flow.io.path, "s3://x/y"):find('flow.io.mounts.s3 = "/folder/of/buckets"', 1, true))
    flow.io.mounts.s3 = base
    assert.are.equal(base .. "/photos/z", flow.io.path "s3://photos/z")
    assert.is_truthy(message_of(flow.io.path, "gs://../x"):find("names no bucket", 1, true))
    assert.are.equal("/a/b", flow.io.path "file:///a/b")
    assert.are.equal("here/a b", flow.io.path "here/a b")
    assert.are.equal("flow.io.path: a path is a string, got nil", message_of(flow.io.path))
    for _, call in ipairs {
      function() flow.load_npy "az://b/x.npy" end, function() flow.load_npz("az://b/x.npz", "x") end,
      function() flow.image.load "az://b/x.png" end,
      function() flow.image_dataset_from_directory "az://b/x" end, function() flow.load_model "az://b/x.keras" end,
      function() flow.data.TFRecordDataset { "az://b/x" } end, function() flow.data.Dataset.list_files "az://b/*" end,
      function() flow.data.Dataset.range(3):cache "az://b/x" end, function() flow.datasets.mnist { path = "az://b/x" } end,
      function() flow.data.TFRecordWriter "az://b/x" end, function() flow.save_npy("az://b/x", flow.ones { 1 }) end,
    } do
      assert.truthy(message_of(call):find("nothing is mounted for az://", 1, true))
    end
    assert.is_truthy(message_of(flow.io.path, "a\0b"):find("zero bytes", 1, true))
  end)

  it("refuses what is neither a pattern nor a sound", function()
    assert.equal("flow.io.glob takes a pattern or a list of them, got nil", message_of(flow.io.glob))
    assert.equal("flow.io.glob: entry 1 of the list is nil: is a name misspelt?", message_of(flow.io.glob, { nil, base }))
    local path = base .. "/none.wav"
    assert.equal("flow.io.save_wav: a sound is a tensor, flow.tensor(list), got a table", message_of(flow.io.save_wav, path, { 0.5 }, 8000))
    assert.matches("up to 32767 of them, got {1, 32768}", message_of(flow.io.save_wav, path, flow.zeros { 1, 32768 }, 8000))
    assert.is_false(flow.io.exists(path))
  end)
end)
