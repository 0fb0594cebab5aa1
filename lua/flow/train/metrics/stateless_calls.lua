-- stateless_calls.lua: metrics from configs, and on other values of their variables than they have.

local object = require "flow.object"
local stateless = require "flow.layers.classes.stateless"
local takes = require("flow.signature").takes

-- Metric: the class of all metrics; metrics: flow.metrics.
return function(Metric, metrics)
  -- Makes a metric of this class from what get_config() gave.
  object.static(Metric, "from_config", function(class, config)
    object.check_config(class.name, config)
    if rawget(class, "in_lua") then return class(config) end
    return metrics.deserialize { class_name = class.name, config = config }
  end)

  -- The same on values of the metric's variables, a list, in their place; the values after it, or the result.
  function Metric:stateless_update_state(metric_variables, ...)
    local what = object.title(self) .. ": stateless_update_state"
    return (stateless(what, self.variables, metric_variables, false, self.update_state, self, ...))
  end
  takes "metric_variables: list"
  function Metric:stateless_result(metric_variables)
    return select(2, stateless(object.title(self) .. ": stateless_result", self.variables, metric_variables, false, self.result, self))
  end
  function Metric:stateless_reset_state()
    return (stateless(object.title(self) .. ": stateless_reset_state", self.variables, nil, false, self.reset_state, self))
  end
end
