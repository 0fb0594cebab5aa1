-- operation_classes.lua: classes of keras.ops whose arguments are bound by their names (bound_operations.lua), and our functions.
--
-- A line of CLASSES is: module, Keras' class, our function, the parameters of the call in Keras' order, then after | those of the
-- constructor, which are in the entry's config. A parameter is name=own, or name where both are the same, *name for all further operands of
-- the call, and ends in @ if its numbers are axes or positions, % if only lists of it are, ? if it is an axis or a window and null in the
-- file means none rather than the default, + if it is a list of tensors, ! if any value is refused. After > come the numbers of the results
-- that are positions.
--
-- Quantile has no method, since Keras' operation does not use the one that it is given: it is always linear.

local CLASSES = [[
numpy AllClose allclose x1=a x2=b | rtol atol equal_nan
numpy Angle angle x
numpy Argmax argmax x | axis@ keepdims > 1
numpy Argmin argmin x | axis@ keepdims > 1
numpy Argpartition argpartition x | kth@ axis@ > 1
numpy Argsort argsort x | axis? > 1
numpy Array cast x | dtype
numpy ArraySplit array_split x | indices_or_sections=cuts axis@
numpy Average average x weights | axis@
numpy Bincount bincount x | weights minlength sparse!
numpy BroadcastTo broadcast_to x | shape
numpy Conjugate conjugate x
numpy Corrcoef corrcoef x
numpy Correlate correlate x1=a x2=b | mode
numpy Cross cross x1=a x2=b | axisa@ axisb@ axisc@ axis@
numpy Diag diag x | k
numpy Diagflat diagflat x | k
numpy Digitize digitize x bins
numpy Dot dot x1=a x2=b
numpy Dsplit dsplit x | indices_or_sections=cuts
numpy Einsum einsum *operands | subscripts=equation
numpy EmptyLike empty_like x | dtype
numpy ExpandDims expand_dims x | axis
numpy FullLike full_like x fill_value=value | dtype
numpy Geomspace geomspace start stop | num endpoint dtype axis@
numpy Hsplit hsplit x | indices_or_sections=cuts
numpy Imag imag x
numpy Inner inner x1=a x2=b
numpy IsIn isin x1=a x2=b | assume_unique invert
numpy Isclose isclose x1=a x2=b rtol atol | equal_nan
numpy Isreal isreal x
numpy Kron kron x1=a x2=b
numpy Linspace linspace start stop | num endpoint retstep dtype axis@
numpy Logspace logspace start stop | num endpoint base dtype axis@
numpy Meshgrid meshgrid *vectors | indexing
numpy Nanargmax nanargmax x | axis@ keepdims > 1
numpy Nanargmin nanargmin x | axis@ keepdims > 1
numpy Nancumprod nancumprod x | axis@ dtype
numpy Nancumsum nancumsum x | axis@ dtype
numpy Nanpercentile nanpercentile x q | axis@ method keepdims
numpy Nanquantile nanquantile x q | axis@ method keepdims
numpy Outer outer x1=a x2=b
numpy Percentile percentile x q | axis@ method keepdims
numpy Quantile quantile x q | axis@ keepdims
numpy Real real x
numpy Rot90 rot90 array=x | k axes@
numpy SearchSorted searchsorted sorted_sequence values | side > 1
numpy Select select condlist=conditions+ choicelist=choices+ default
numpy Sort sort x | axis?
numpy Take take x indices=positions@ | axis@
numpy TakeAlongAxis take_along_axis x indices=positions@ | axis@
numpy Tensordot tensordot x1=a x2=b | axes%
numpy Trapezoid trapezoid y | x dx axis@
numpy UnravelIndex unravel_index indices=positions@ | shape > 1 2 3 4 5 6 7 8
numpy Vander vander x | N=n increasing
numpy Vdot vdot x1=a x2=b
numpy Vsplit vsplit x | indices_or_sections=cuts
numpy Vstack vstack xs=values+
nn AdaptiveAveragePool adaptive_average_pool inputs | output_size data_format
nn AdaptiveMaxPool adaptive_max_pool inputs | output_size data_format
nn AveragePool average_pool inputs | pool_size strides padding data_format
nn BatchNorm batch_normalization x mean variance offset scale | axis@ epsilon
nn CTCLoss ctc_loss target output target_length output_length | mask_index
nn Conv conv inputs kernel | strides padding data_format dilation_rate
nn ConvTranspose conv_transpose inputs kernel | strides padding output_padding data_format dilation_rate
nn DepthwiseConv depthwise_conv inputs kernel | strides padding data_format dilation_rate
nn DotProductAttention dot_product_attention query key value bias mask scale | is_causal flash_attention attn_logits_soft_cap
nn LogSoftmax log_softmax x | axis?
nn Softmax softmax x | axis?
nn Fold fold x | output_size kernel_size dilation padding stride
nn LayerNorm layer_normalization x gamma beta | axis@ epsilon rms_scaling!
nn MaxPool max_pool inputs | pool_size strides padding data_format
nn MultiHot multi_hot inputs=labels | num_classes axis@ dtype sparse!
nn OneHot one_hot x=labels | num_classes axis@ dtype sparse!
nn PSNR psnr x1=a x2=b | max_val
nn RMSNorm rms_normalization x scale | axis@ epsilon
nn SeparableConv separable_conv inputs depthwise_kernel pointwise_kernel | strides padding data_format dilation_rate
nn SparseCategoricalCrossentropy sparse_categorical_crossentropy target output | from_logits axis@
nn Unfold unfold x | kernel_size dilation padding stride
math ExtractSequences extract_sequences x | sequence_length sequence_stride
math ISTFT istft x+ | sequence_length sequence_stride fft_length length window? center
math InTopK in_top_k targets predictions | k
math SegmentMax segment_max data segment_ids | num_segments sorted
math SegmentMin segment_min data segment_ids | num_segments sorted
math SegmentProd segment_prod data segment_ids | num_segments sorted
math SegmentSum segment_sum data segment_ids | num_segments sorted
math STFT stft x | sequence_length sequence_stride fft_length window? center
math TopK top_k x | k sorted > 2
core ConvertToTensor cast x | dtype sparse! ragged!
core SaturateCast saturate_cast x | dtype
core Scatter scatter indices=positions@ values | shape
core ScatterUpdate scatter_update inputs=x indices=positions@ updates | reduction
core Slice slice inputs=x start_indices=starts@ | shape
core SliceUpdate slice_update inputs=x start_indices=starts@ updates
linalg LuFactor lu_factor x > 2
linalg MatrixRank matrix_rank x | tol
linalg Pinv pinv x | rcond
einops Rearrange rearrange tensor=x pattern axes_lengths=lengths
image AffineTransform image.affine_transform images transform | interpolation fill_mode fill_value data_format
image CropImages image.crop_images images | top_cropping left_cropping bottom_cropping right_cropping target_height target_width data_format
image ExtractPatches image.extract_patches images | size strides dilation_rate padding data_format
image GaussianBlur image.gaussian_blur images | kernel_size sigma data_format
image HSVToRGB image.hsv_to_rgb images | data_format
image MapCoordinates image.map_coordinates inputs coordinates | order fill_mode fill_value
image PadImages image.pad_images images | top_padding left_padding bottom_padding right_padding target_height target_width data_format
image PerspectiveTransform image.perspective_transform images start_points end_points | interpolation fill_value data_format
image RGBToGrayscale image.rgb_to_grayscale images | data_format
image RGBToHSV image.rgb_to_hsv images | data_format
image Resize image.resize images | size interpolation antialias crop_to_aspect_ratio pad_to_aspect_ratio fill_mode fill_value data_format
image SSIM image.ssim image1 image2 | max_val filter_size filter_sigma k1 k2 data_format
image ScaleAndTranslate image.scale_and_translate images output_shape scale translation | spatial_dims@ method antialias
image SobelEdges image.sobel_edges images | data_format
]]

local classes = { by_class = {}, by_name = {} }

local function parameters_of(text)
  local list = {}
  for star, name, own, mark in text:gmatch "(%*?)([%w_]+)=?([%w_]*)([@%%!?+]?)" do
    list[#list + 1] = { name = name, own = own ~= "" and own or name, mark = mark, rest = star == "*" }
  end
  return list
end

for line in CLASSES:gmatch "[^\n]+" do
  local module, class_name, name, rest = line:match "^(%S+) (%S+) (%S+) (.*)$"
  local first, results = rest:match "^(.-) > (.*)$"
  local call, content = (first or rest):match "^(.-) | (.*)$"
  local record = { module = "keras.src.ops." .. module, class_name = class_name, name = name, positions = {},
                   call = parameters_of(call or first or rest), config = parameters_of(content or "") }
  for number in (results or ""):gmatch "%d" do record.positions[tonumber(number)] = true end
  classes.by_class[record.module .. "." .. class_name], classes.by_name[name] = record, classes.by_name[name] or record
end

return classes
