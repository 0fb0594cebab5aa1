-- missing_parts_spec.lua: what a build says if a record names a part that no file has (cmake/link).
local support = require "spec.support.init"

-- What cmake/link says, and its status, where the linker is this shell script.
local function linked(linker)
  local path = support.file("linker", "#!/bin/sh\n" .. linker)
  local output, status = support.run(("%scmake/link sh %s"):format(support.root, path))
  os.remove(path)
  return output, status
end

-- The line of a file that begins with a text.
local function line_of(file, text)
  local number = 0
  for line in io.lines(support.root .. file) do
    number = number + 1
    if line:sub(1, #text) == text then return number end
  end
end

local function check(undefined, file, record, words)
  local output, status = linked(("printf '%%s\\n' \"%s\" >&2; exit 1"):format(undefined))
  assert.equal(1, status)
  local expected = ("%s:%d: error: %s"):format(file, line_of(file, record), words)
  assert.truthy(output:find(expected, 1, true), output)
end

describe("a record without one of its parts", function()
  it("stops the build, which names the record's line and where the part belongs", function()
    check("table.o: undefined reference to \\`flow_gradient_softplus'", "core/ops/ops.def", "FLOW_FLOATS(softplus",
      "the gradient rule softplus is missing: write it in a file of core/ops/rules")
    check("op.o: undefined reference to ‘flow_shape_cumsum’", "core/ops/ops.def", "FLOW_OP(cumsum",
      "the shape rule cumsum is missing: write flow_shape_cumsum() in a file of core/ops/rules")
    check("ld.lld: error: undefined symbol: flow_cpu_plain_cumsum_kernels", "core/ops/ops.def", "FLOW_OP(cumsum",
      "the CPU kernel of the op cumsum is missing: define FLOW_KERNELS(cumsum) in a file of kernels/cpu")
    check("classes.o: undefined reference to \\`flow_layer_dense'", "core/layers/layers.def", "FLOW_LAYER(dense)",
      "the record of the layer dense is missing: define flow_layer_dense in core/layers/dense.c")
  end)

  it("leaves other failures, and links that succeed, as they are", function()
    assert.same({ "cannot find -lz\n", 2 }, { linked "echo 'cannot find -lz' >&2; exit 2" })
    assert.same({ "", 0 }, { linked "exit 0" })
  end)
end)
