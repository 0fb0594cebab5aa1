-- datasets_spec.lua: flow.datasets.mnist: the digits of the examples, and what is said when there are none.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

local digits = support.root .. "lua/examples/digits"

local function folder_of(path) return path:match("^(.*)/[^/]*$") end

describe("datasets.mnist", function()
  it("loads images and labels as uint8", function()
    local x, y, x_test, y_test = flow.datasets.mnist { path = digits }
    assert.same({ #y, 28, 28 }, x.shape)
    assert.same({ #y_test, 28, 28 }, x_test.shape)
    assert.same({ "uint8", "uint8" }, { x.dtype, y.dtype })
    assert.is_true(y:max():item() == 9 and y:min():item() == 0 and x:max():item() == 255)
    assert.same(y:totable(), (select(2, flow.datasets.mnist(digits .. "/"))):totable())
  end)

  it("reads unpacked files, and names with a dot", function()
    local folder = folder_of(support.file("marker", ""))
    local names = { ["train-images-idx3-ubyte"] = "train-images-idx3-ubyte", ["train-labels-idx1-ubyte"] = "train-labels.idx1-ubyte",
                    ["t10k-images-idx3-ubyte"] = "t10k-images.idx3-ubyte", ["t10k-labels-idx1-ubyte"] = "t10k-labels-idx1-ubyte" }
    for name, written in pairs(names) do
      local _, code = support.run(("gzip -dc %s/%s.gz > %s/%s"):format(digits, name, folder, written))
      assert.equal(0, code)
    end
    local _, y = flow.datasets.mnist { path = folder }
    assert.same((select(2, flow.datasets.mnist { path = digits })):totable(), y:totable())
  end)

  it("says what it looked for", function()
    local folder = folder_of(support.file("marker", ""))
    local text = message_of(function() flow.datasets.mnist { path = folder } end)
    assert.truthy(text:find("datasets.mnist: no data found; give { path = \"folder\" } or set FLOW_DATA. Looked for", 1, true))
    assert.truthy(text:find(folder .. "/train-images-idx3-ubyte[.gz] or " .. folder .. "/mnist.npz", 1, true))
    assert.truthy(text:find("tf-keras-datasets/mnist.npz", 1, true), text)
    text = message_of(function() flow.datasets.fashion_mnist { path = folder } end)
    assert.truthy(text:find("tf-keras-datasets/{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz", 1, true), text)
    local missing = folder .. "/none.npz"
    assert.truthy(message_of(function() flow.datasets.mnist { path = missing } end):find(missing, 1, true))
  end)

  it("refuses files that are not what their names say", function()
    local path = support.file("train-images-idx3-ubyte", "not an IDX file at all")
    local folder = folder_of(path)
    for _, name in ipairs { "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" } do
      support.run(("cp %s %s/%s"):format(path, folder, name))
    end
    assert.truthy(message_of(function() flow.datasets.mnist { path = folder } end):find("train-images-idx3-ubyte", 1, true))
    -- labels where images belong
    support.run(("for f in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do " ..
      "cp %s/train-labels-idx1-ubyte.gz %s/$f-ubyte.gz; rm -f %s/$f-ubyte; done"):format(digits, folder, folder))
    assert.truthy(message_of(function() flow.datasets.mnist { path = folder } end):find("expected {n, height, width} and {n}", 1, true))
  end)

  it("names wrong options", function()
    assert.truthy(message_of(function() flow.datasets.mnist { pth = "x" } end):find('did you mean "path"?', 1, true))
    assert.truthy(message_of(function() flow.datasets.mnist { path = 3 } end):find("a path is a string, got the number 3", 1, true))
    assert.truthy(message_of(function() return flow.datasets.cifar end):find('flow.datasets has no "cifar"', 1, true))
  end)
end)
