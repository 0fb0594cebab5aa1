-- cuda_messages_spec.lua: what flowlua doctor says of GPUs where something is missing. The libraries are real where they are the
-- machine's, and made here, by the C compiler, where they have to be wrong.
local support = require "spec.support.init"

local library = os.getenv("FLOWLUA_LIB")
local plugin = io.open((library:gsub("libflow%.so%.0$", "libflow_cuda.so")))
if plugin then plugin:close() end
local has_driver = support.run("ldconfig -p | grep -c libcuda.so.1"):match("^0") == nil

local function check(name, test)
  if not plugin then
    test = function() pending("this build has no libflow_cuda.so: the CUDA toolkit (nvcc 13, cuDNN, NCCL) is missing") end
  end
  it(name, test)
end

-- doctor's line of the plugin, with these variables in its environment
local function line(environment)
  local output, code = support.run(("%s FLOWLUA_PATH=%slua %s doctor"):format(environment or "", support.root, support.program))
  assert.equal(0, code)
  return output:match("\ncuda +([^\n]*)")
end

local function contains(text, part)
  assert.truthy(text:find(part, 1, true), ("%q does not contain %q"):format(text, part))
end

-- A folder with shared libraries: name -> C code.
local function folder_of(libraries)
  local folder
  for name, code in pairs(libraries) do
    local source = support.file(name .. ".c", code)
    folder = folder or source:match("^(.*)/")
    local output, status = support.run(("cc -shared -fPIC -o %s/%s %s"):format(folder, name, source))
    assert.equal(0, status, output)
  end
  return folder
end

describe("doctor", function()
  check("names the plugin's parts", function()
    contains(line(), "training on NVIDIA GPUs: CUDA runtime 13.")
    contains(line(), "kernels for sm_80, sm_90, sm_100")
  end)

  check("says that there is no driver", function()
    if has_driver then return pending("this machine has NVIDIA's driver") end
    contains(line(), "; no NVIDIA driver (libcuda.so.1 is not there); ")
  end)

  -- So no kernel is launched by a driver that takes fewer bytes of arguments than ours have (runtime_cuda.c).
  check("says that the driver is older than the build's CUDA runtime", function()
    local file = io.open(library:match("^(.*)/lib/") .. "/cuda/stand_in/stand_in.c")
    local driver = file:read("*a")
    file:close()
    for version, text in pairs { [12000] = "12.0", [12090] = "12.9" } do
      local replaced, count = driver:gsub("%*version = 13000;", ("*version = %d;"):format(version))
      assert.equal(1, count)
      local folder = folder_of { ["libcuda.so.1"] = replaced }
      contains(line(("LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"):format(folder)),
        ("the NVIDIA driver serves CUDA %s, this build needs 13.0: install a newer driver"):format(text))
    end
  end)

  check("says which libraries are not there, and where they were looked for", function()
    local nowhere = support.file("empty", ""):match("^(.*)/")
    local text = line("FLOW_CUDA_LIBS=" .. nowhere)
    for name, file in pairs { cuDNN = "libcudnn.so.9", cuBLASLt = "libcublasLt.so.13", NCCL = "libnccl.so.2" } do
      contains(text, ("no %s (%s/%s: cannot open shared object file"):format(name, nowhere, file))
    end
  end)

  check("takes no other major version", function()
    local folder = folder_of { ["libcudnn.so.8"] = "unsigned long cudnnGetVersion(void) { return 8907; }" }
    contains(line("FLOW_CUDA_LIBS=" .. folder), "libcudnn.so.9: cannot open shared object file")
  end)

  check("refuses a library without the functions", function()
    local folder = folder_of { ["libcudnn.so.9"] = "unsigned long cudnnGetVersion(void) { return 91900; }" }
    contains(line("FLOW_CUDA_LIBS=" .. folder), "no cuDNN: libcudnn.so.9 lacks the function cudnn")
  end)

  check("refuses a version that is too old", function()
    local names = {}
    local functions = support.root .. "kernels/cuda/runtime/nccl_functions.h"
    for name in support.run("grep -oE 'X\\(nccl[A-Za-z]+\\)' " .. functions):gmatch("%((%w+)%)") do
      if name ~= "ncclGetVersion" then names[#names + 1] = ("int %s(void) { return 1; }"):format(name) end
    end
    assert.truthy(#names > 5)
    names[#names + 1] = "int ncclGetVersion(int *version) { *version = 21703; return 0; }"
    local folder = folder_of { ["libnccl.so.2"] = table.concat(names, "\n") }
    contains(line("FLOW_CUDA_LIBS=" .. folder), "no NCCL: version 2.17.3 was found, 2.18.0 or newer is needed")
  end)

  it("says what to install where there is no plugin", function()
    local nowhere = support.file("empty", ""):match("^(.*)/")
    contains(line("FLOW_PLUGINS=" .. nowhere), "for training on NVIDIA GPUs the plugin libflow_cuda.so is needed, which is not in "
      .. nowhere .. ": install CUDA 13 (nvcc), then build again with scripts/setup")
  end)

  it("names the emulated device", function()
    contains(line("FLOW_PLUGINS=" .. library:match("^(.*/)") .. "emulated"), "a device that the CPU emulates, for tests")
  end)
end)

describe("NVIDIA's NCCL", function()
  check("gives groups their ids without a GPU, and says what a communicator lacks then", function()
    local output, code = support.run((library:gsub("/lib/[^/]*$", "/bin/cuda_bootstrap")))
    if code == 3 then return pending(output) end
    assert.equal(0, code, output)
    contains(output, "ids of 128 bytes, each its own\n")
    if has_driver then return pending("this machine has NVIDIA's driver: " .. output) end
    contains(output, "a communicator: unhandled cuda error")
    contains(output, "CUDA driver version is insufficient")
  end)
end)
