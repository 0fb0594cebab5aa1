--- Float32 is multiplied in TF32 on GPUs, factors of 10 bits, unless exact results are asked for: specs that run there ($FLOW_DEVICE), and
--- compare what they find to the last digits, ask for them. To be required after spec.support and before anything is computed.
local flow = require "flow"

local precision = { on_gpu = (os.getenv("FLOW_DEVICE") or "cpu"):find("^cpu") == nil }

--- What specs run in that do not say.
precision.default = precision.on_gpu and "exact" or "fast"
--- What they run in besides "exact", where they run in several.
precision.all = precision.on_gpu and { "exact" } or { "fast", "exact" }

flow.config.set_precision(precision.default)

return precision
