-- parameters.lua: the parameters of Keras 3.15.1's functions. Made by parameters.py.
return {
  ["ops"] = [[
    abs: x; absolute: x; adaptive_average_pool: inputs output_size data_format; adaptive_max_pool: inputs output_size data_format; add:
    x1 x2; all: x axis keepdims=false; allclose: x1 x2 rtol=1e-05 atol=1e-08 equal_nan=false; amax: x axis keepdims=false; amin: x axis
    keepdims=false; angle: x; any: x axis keepdims=false; append: x1 x2 axis; arange: start stop step dtype; arccos: x; arccosh: x;
    arcsin: x; arcsinh: x; arctan: x; arctan2: x1 x2; arctanh: x; argmax: x axis keepdims=false; argmin: x axis keepdims=false;
    argpartition: x kth axis=-1; argsort: x axis=-1; array: x dtype; array_split: x indices_or_sections axis=0; associative_scan: f
    elems reverse=false axis=0; average: x axis weights; average_pool: inputs pool_size strides padding=valid data_format; bartlett: x;
    batch_normalization: x mean variance axis offset scale epsilon=0.001; binary_crossentropy: target output from_logits=false;
    bincount: x weights minlength=0 sparse=false; bitwise_and: x y; bitwise_invert: x; bitwise_left_shift: x y; bitwise_not: x;
    bitwise_or: x y; bitwise_right_shift: x y; bitwise_xor: x y; blackman: x; broadcast_to: x shape; cast: x dtype;
    categorical_crossentropy: target output from_logits=false axis=-1; cbrt: x; cdist: x y; ceil: x; celu: x alpha=1.0; cholesky: x
    upper=false; cholesky_inverse: x upper=false; clip: x x_min x_max; concatenate: xs axis=0; cond: pred true_fn false_fn; conj: x;
    conjugate: x; conv: inputs kernel strides=1 padding=valid data_format dilation_rate=1; conv_transpose: inputs kernel strides=1
    padding=valid output_padding data_format dilation_rate=1; convert_to_numpy: x; convert_to_tensor: x dtype sparse ragged; copy: x;
    corrcoef: x; correlate: x1 x2 mode=valid; cos: x; cosh: x; count_nonzero: x axis; cross: x1 x2 axisa=-1 axisb=-1 axisc=-1 axis;
    ctc_decode: inputs sequence_lengths strategy=greedy beam_width=100 top_paths=1 merge_repeated=true mask_index=0; ctc_loss: target
    output target_length output_length mask_index=0; cumprod: x axis dtype; cumsum: x axis dtype; custom_gradient: f; deg2rad: x;
    depth_to_space: x block_size data_format=channels_last; depthwise_conv: inputs kernel strides=1 padding=valid data_format
    dilation_rate=1; det: x; diag: x k=0; diagflat: x k=0; diagonal: x offset=0 axis1=0 axis2=1; diff: a n=1 axis=-1; digitize: x bins;
    divide: x1 x2; divide_no_nan: x1 x2; dot: x1 x2; dot_product_attention: query key value bias mask scale is_causal=false
    flash_attention attn_logits_soft_cap; dsplit: x indices_or_sections; dstack: xs; dtype: x; eig: x; eigh: x; einsum: subscripts; elu:
    x alpha=1.0; empty: shape dtype; empty_like: x dtype; equal: x1 x2; erf: x; erfc: x; erfinv: x; exp: x; exp2: x; expand_dims: x
    axis; expm1: x; extract_sequences: x sequence_length sequence_stride; eye: N M k=0 dtype; fabs: x; fft: x; fft2: x; flip: x axis;
    fliplr: x; flipud: x; floor: x; floor_divide: x1 x2; fmax: x1 x2; fmin: x1 x2; fmod: x1 x2; fold: x output_size kernel_size
    dilation=1 padding=0 stride=1; fori_loop: lower upper body_fun init_val; full: shape fill_value dtype; full_like: x fill_value
    dtype; gcd: x1 x2; gelu: x approximate=true; geomspace: start stop num=50 endpoint=true dtype axis=0; get_item: x key; glu: x
    axis=-1; greater: x1 x2; greater_equal: x1 x2; hamming: x; hanning: x; hard_shrink: x threshold=0.5; hard_sigmoid: x; hard_silu: x;
    hard_swish: x; hard_tanh: x; heaviside: x1 x2; histogram: x bins=10 range; hsplit: x indices_or_sections; hstack: xs; hypot: x1 x2;
    i0: x; identity: n dtype; ifft2: x; imag: x; in_top_k: targets predictions k; inner: x1 x2; inv: x; irfft: x fft_length; is_tensor:
    x; isclose: x1 x2 rtol=1e-05 atol=1e-08 equal_nan=false; isfinite: x; isin: x1 x2 assume_unique=false invert=false; isinf: x; isnan:
    x; isneginf: x; isposinf: x; isreal: x; istft: x sequence_length sequence_stride fft_length length window=hann center=true; jvp: fun
    primals tangents has_aux=false; kaiser: x beta; kron: x1 x2; layer_normalization: x gamma beta axis=-1 epsilon; lcm: x1 x2; ldexp:
    x1 x2; leaky_relu: x negative_slope=0.2; left_shift: x y; less: x1 x2; less_equal: x1 x2; linspace: start stop num=50 endpoint=true
    retstep=false dtype axis=0; log: x; log10: x; log1p: x; log2: x; log_sigmoid: x; log_softmax: x axis=-1; logaddexp: x1 x2;
    logaddexp2: x1 x2; logdet: x; logical_and: x1 x2; logical_not: x; logical_or: x1 x2; logical_xor: x1 x2; logspace: start stop num=50
    endpoint=true base=10 dtype axis=0; logsumexp: x axis keepdims=false; lstsq: a b rcond; lu_factor: x; map: f xs; matmul: x1 x2;
    matrix_rank: x tol; max: x axis keepdims=false initial; max_pool: inputs pool_size strides padding=valid data_format; maximum: x1
    x2; mean: x axis keepdims=false; median: x axis keepdims=false; meshgrid: indexing=xy; min: x axis keepdims=false initial; minimum:
    x1 x2; mod: x1 x2; moments: x axes keepdims=false synchronized=false; moveaxis: x source destination; multi_hot: inputs num_classes
    axis=-1 dtype sparse=false; multiply: x1 x2; nan_to_num: x nan=0.0 posinf neginf; nanargmax: x axis keepdims=false; nanargmin: x
    axis keepdims=false; nancumprod: x axis dtype; nancumsum: x axis dtype; nanmax: x axis keepdims=false; nanmean: x axis
    keepdims=false; nanmedian: x axis keepdims=false; nanmin: x axis keepdims=false; nanpercentile: x q axis method=linear
    keepdims=false; nanprod: x axis keepdims=false; nanquantile: x q axis method=linear keepdims=false; nanstd: x axis keepdims=false;
    nansum: x axis keepdims=false; nanvar: x axis keepdims=false; ndim: x; negative: x; nextafter: x1 x2; nonzero: x; norm: x ord axis
    keepdims=false; normalize: x axis=-1 order=2 epsilon; not_equal: x1 x2; one_hot: x num_classes axis=-1 dtype sparse=false; ones:
    shape dtype; ones_like: x dtype; outer: x1 x2; pad: x pad_width mode=constant constant_values; percentile: x q axis method=linear
    keepdims=false; pinv: x rcond; polar: abs_ angle; power: x1 x2; prod: x axis keepdims=false dtype; psnr: x1 x2 max_val; ptp: x axis
    keepdims=false; qr: x mode=reduced; quantile: x q axis method=linear keepdims=false; rad2deg: x; ravel: x; real: x; rearrange:
    tensor pattern; reciprocal: x; relu: x; relu6: x; repeat: x repeats axis; reshape: x newshape; rfft: x fft_length; right_shift: x y;
    rms_normalization: x scale axis=-1 epsilon; roll: x shift axis; rot90: array k=1 axes; round: x decimals=0; rsqrt: x; saturate_cast:
    x dtype; scan: f init xs length reverse=false unroll=1; scatter: indices values shape; scatter_update: inputs indices updates
    reduction; searchsorted: sorted_sequence values side=left; segment_max: data segment_ids num_segments sorted=false; segment_min:
    data segment_ids num_segments sorted=false; segment_prod: data segment_ids num_segments sorted=false; segment_sum: data segment_ids
    num_segments sorted=false; select: condlist choicelist default=0; selu: x; separable_conv: inputs depthwise_kernel pointwise_kernel
    strides=1 padding=valid data_format dilation_rate=1; shape: x; sigmoid: x; sign: x; signbit: x; silu: x; sin: x; sinc: x; sinh: x;
    size: x; slice: inputs start_indices shape; slice_update: inputs start_indices updates; slogdet: x; soft_shrink: x threshold=0.5;
    softmax: x axis=-1; softplus: x; softsign: x; solve: a b; solve_triangular: a b lower=false; sort: x axis=-1; space_to_depth: x
    block_size data_format=channels_last; sparse_categorical_crossentropy: target output from_logits=false axis=-1; sparse_plus: x;
    sparse_sigmoid: x; sparsemax: x axis=-1; split: x indices_or_sections axis=0; sqrt: x; square: x; squareplus: x b=4; squeeze: x
    axis; stack: x axis=0; std: x axis keepdims=false; stft: x sequence_length sequence_stride fft_length window=hann center=true;
    stop_gradient: variable; subtract: x1 x2; sum: x axis keepdims=false; svd: x full_matrices=true compute_uv=true; swapaxes: x axis1
    axis2; swish: x; switch: index branches; take: x indices axis; take_along_axis: x indices axis; tan: x; tanh: x; tanh_shrink: x;
    tensordot: x1 x2 axes=2; threshold: x threshold default_value; tile: x repeats; top_k: x k sorted=true; trace: x offset=0 axis1=0
    axis2=1; transpose: x axes; trapezoid: y x dx=1.0 axis=-1; tri: N M k=0 dtype; tril: x k=0; triu: x k=0; true_divide: x1 x2; trunc:
    x; unfold: x kernel_size dilation=1 padding=0 stride=1; unique: x sorted=true return_index=false return_inverse=false
    return_counts=false axis size fill_value; unravel_index: indices shape; unstack: x num axis=0; vander: x N increasing=false; var: x
    axis keepdims=false; vdot: x1 x2; vectorize: pyfunc excluded signature; vectorized_map: function elements; view: x dtype;
    view_as_complex: x; view_as_real: x; vsplit: x indices_or_sections; vstack: xs; where: condition x1 x2; while_loop: cond body
    loop_vars maximum_iterations; zeros: shape dtype; zeros_like: x dtype;
  ]],
  ["ops.image"] = [[
    affine_transform: images transform interpolation=bilinear fill_mode=constant fill_value=0 data_format; crop_images: images
    top_cropping left_cropping bottom_cropping right_cropping target_height target_width data_format; elastic_transform: images
    alpha=20.0 sigma=5.0 interpolation=bilinear fill_mode=reflect fill_value=0.0 seed data_format; extract_patches: images size strides
    dilation_rate=1 padding=valid data_format; extract_patches_3d: volumes size strides dilation_rate=1 padding=valid data_format;
    gaussian_blur: images kernel_size sigma data_format; hsv_to_rgb: images data_format; map_coordinates: inputs coordinates order
    fill_mode=constant fill_value=0; pad_images: images top_padding left_padding bottom_padding right_padding target_height target_width
    data_format; perspective_transform: images start_points end_points interpolation=bilinear fill_value=0 data_format; resize: images
    size interpolation=bilinear antialias=false crop_to_aspect_ratio=false pad_to_aspect_ratio=false fill_mode=constant fill_value=0.0
    data_format; rgb_to_grayscale: images data_format; rgb_to_hsv: images data_format; scale_and_translate: images output_shape scale
    translation spatial_dims method antialias=true; sobel_edges: images data_format; ssim: image1 image2 max_val=1.0 filter_size=11
    filter_sigma=1.5 k1=0.01 k2=0.03 data_format;
  ]],
  ["ops.linalg"] = [[
    cholesky: x upper=false; cholesky_inverse: x upper=false; det: x; eig: x; eigh: x; inv: x; jvp: fun primals tangents has_aux=false;
    lstsq: a b rcond; lu_factor: x; matrix_rank: x tol; norm: x ord axis keepdims=false; pinv: x rcond; qr: x mode=reduced; solve: a b;
    solve_triangular: a b lower=false; svd: x full_matrices=true compute_uv=true;
  ]],
  ["ops.nn"] = [[
    adaptive_average_pool: inputs output_size data_format; adaptive_max_pool: inputs output_size data_format; average_pool: inputs
    pool_size strides padding=valid data_format; batch_normalization: x mean variance axis offset scale epsilon=0.001;
    binary_crossentropy: target output from_logits=false; categorical_crossentropy: target output from_logits=false axis=-1; celu: x
    alpha=1.0; conv: inputs kernel strides=1 padding=valid data_format dilation_rate=1; conv_transpose: inputs kernel strides=1
    padding=valid output_padding data_format dilation_rate=1; ctc_decode: inputs sequence_lengths strategy=greedy beam_width=100
    top_paths=1 merge_repeated=true mask_index=0; ctc_loss: target output target_length output_length mask_index=0; depth_to_space: x
    block_size data_format=channels_last; depthwise_conv: inputs kernel strides=1 padding=valid data_format dilation_rate=1;
    dot_product_attention: query key value bias mask scale is_causal=false flash_attention attn_logits_soft_cap; elu: x alpha=1.0; fold:
    x output_size kernel_size dilation=1 padding=0 stride=1; gelu: x approximate=true; glu: x axis=-1; hard_shrink: x threshold=0.5;
    hard_sigmoid: x; hard_silu: x; hard_swish: x; hard_tanh: x; layer_normalization: x gamma beta axis=-1 epsilon; leaky_relu: x
    negative_slope=0.2; log_sigmoid: x; log_softmax: x axis=-1; max_pool: inputs pool_size strides padding=valid data_format; moments: x
    axes keepdims=false synchronized=false; multi_hot: inputs num_classes axis=-1 dtype sparse=false; normalize: x axis=-1 order=2
    epsilon; one_hot: x num_classes axis=-1 dtype sparse=false; polar: abs_ angle; psnr: x1 x2 max_val; relu: x; relu6: x;
    rms_normalization: x scale axis=-1 epsilon; selu: x; separable_conv: inputs depthwise_kernel pointwise_kernel strides=1
    padding=valid data_format dilation_rate=1; sigmoid: x; silu: x; soft_shrink: x threshold=0.5; softmax: x axis=-1; softplus: x;
    softsign: x; space_to_depth: x block_size data_format=channels_last; sparse_categorical_crossentropy: target output
    from_logits=false axis=-1; sparse_plus: x; sparse_sigmoid: x; sparsemax: x axis=-1; squareplus: x b=4; swish: x; tanh_shrink: x;
    threshold: x threshold default_value; unfold: x kernel_size dilation=1 padding=0 stride=1;
  ]],
  ["random"] = [[
    SeedGenerator: seed name; beta: shape alpha beta dtype seed; binomial: shape counts probabilities dtype seed; categorical: logits
    num_samples dtype=int32 seed; dropout: inputs rate noise_shape seed; gamma: shape alpha dtype seed; normal: shape mean=0.0
    stddev=1.0 dtype seed; randint: shape minval maxval dtype=int32 seed; shuffle: x axis=0 seed; truncated_normal: shape mean=0.0
    stddev=1.0 dtype seed; uniform: shape minval=0.0 maxval=1.0 dtype seed;
  ]],
  ["utils"] = [[
    CustomObjectScope: custom_objects; FeatureSpace: features output_mode=concat crosses crossing_dim=32 hashing_dim=32
    num_discretization_bins=32 name; Progbar: target width=20 verbose=1 interval=0.05 stateful_metrics stateless_metrics unit_name=step;
    PyDataset: workers=1 use_multiprocessing=false max_queue_size=10; Sequence: workers=1 use_multiprocessing=false max_queue_size=10;
    array_to_img: x data_format scale=true dtype; audio_dataset_from_directory: directory labels=inferred label_mode=int class_names
    batch_size=32 sampling_rate output_sequence_length ragged=false shuffle=true seed validation_split subset follow_links=false
    verbose=true; clear_session: free_memory=true; custom_object_scope: custom_objects; deserialize_keras_object: config custom_objects
    safe_mode=true; get_file: fname origin untar=false md5_hash file_hash cache_subdir=datasets hash_algorithm=auto extract=false
    archive_format=auto cache_dir force_download=false; get_registered_name: obj; get_registered_object: name custom_objects
    module_objects; get_source_inputs: tensor; image_dataset_from_directory: directory labels=inferred label_mode=int class_names
    color_mode=rgb batch_size=32 image_size shuffle=true seed validation_split subset interpolation=bilinear follow_links=false
    crop_to_aspect_ratio=false pad_to_aspect_ratio=false data_format format=tf verbose=true; img_to_array: img data_format dtype;
    is_keras_tensor: x; load_img: path color_mode=rgb target_size interpolation=nearest keep_aspect_ratio=false; model_to_dot: model
    show_shapes=false show_dtype=false show_layer_names=true rankdir=TB expand_nested=false dpi=200 subgraph=false
    show_layer_activations=false show_trainable=false splines=ortho; normalize: x axis=-1 order=2; pack_x_y_sample_weight: x y
    sample_weight; pad_sequences: sequences maxlen dtype=int32 padding=pre truncating=pre value=0.0; plot_model: model to_file=model.png
    show_shapes=false show_dtype=false show_layer_names=false rankdir=TB expand_nested=false dpi=200 show_layer_activations=false
    show_trainable=false splines=ortho; register_keras_serializable: package=Custom name; save_img: path x data_format file_format
    scale=true; serialize_keras_object: obj; set_random_seed: seed; split_dataset: dataset left_size right_size shuffle=false seed
    preferred_backend; standardize_dtype: dtype; text_dataset_from_directory: directory labels=inferred label_mode=int class_names
    batch_size=32 max_length shuffle=true seed validation_split subset follow_links=false format=tf verbose=true;
    timeseries_dataset_from_array: data targets sequence_length sequence_stride=1 sampling_rate=1 batch_size=128 shuffle=false seed
    start_index end_index format=tf; to_categorical: x num_classes; unpack_x_y_sample_weight: data;
  ]],
  ["activations"] = [[
    celu: x alpha=1.0; deserialize: config custom_objects; elu: x alpha=1.0; exponential: x; gelu: x approximate=false; get: identifier;
    glu: x axis=-1; hard_shrink: x threshold=0.5; hard_sigmoid: x; hard_silu: x; hard_swish: x; hard_tanh: x; leaky_relu: x
    negative_slope=0.2; linear: x; log_sigmoid: x; log_softmax: x axis=-1; mish: x; relu: x negative_slope=0.0 max_value threshold=0.0;
    relu6: x; selu: x; serialize: activation; sigmoid: x; silu: x; soft_shrink: x threshold=0.5; softmax: x axis=-1; softplus: x;
    softsign: x; sparse_plus: x; sparse_sigmoid: x; sparsemax: x axis=-1; squareplus: x b=4; swish: x; tanh: x; tanh_shrink: x;
    threshold: x threshold default_value;
  ]],
  ["applications"] = [[
    ConvNeXtBase: include_top=true include_preprocessing=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=convnext_base; ConvNeXtLarge: include_top=true include_preprocessing=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=convnext_large; ConvNeXtSmall: include_top=true
    include_preprocessing=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=convnext_small; ConvNeXtTiny: include_top=true include_preprocessing=true weights=imagenet input_tensor input_shape pooling
    classes=1000 classifier_activation=softmax name=convnext_tiny; ConvNeXtXLarge: include_top=true include_preprocessing=true
    weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=convnext_xlarge; DenseNet121:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=densenet121;
    DenseNet169: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=densenet169; DenseNet201: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=densenet201; EfficientNetB0: include_top=true weights=imagenet input_tensor input_shape pooling
    classes=1000 classifier_activation=softmax name=efficientnetb0; EfficientNetB1: include_top=true weights=imagenet input_tensor
    input_shape pooling classes=1000 classifier_activation=softmax name=efficientnetb1; EfficientNetB2: include_top=true
    weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=efficientnetb2; EfficientNetB3:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=efficientnetb3;
    EfficientNetB4: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=efficientnetb4; EfficientNetB5: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=efficientnetb5; EfficientNetB6: include_top=true weights=imagenet input_tensor input_shape
    pooling classes=1000 classifier_activation=softmax name=efficientnetb6; EfficientNetB7: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=efficientnetb7; EfficientNetV2B0: include_top=true
    weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax include_preprocessing=true
    name=efficientnetv2-b0; EfficientNetV2B1: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax include_preprocessing=true name=efficientnetv2-b1; EfficientNetV2B2: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax include_preprocessing=true name=efficientnetv2-b2;
    EfficientNetV2B3: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    include_preprocessing=true name=efficientnetv2-b3; EfficientNetV2L: include_top=true weights=imagenet input_tensor input_shape
    pooling classes=1000 classifier_activation=softmax include_preprocessing=true name=efficientnetv2-l; EfficientNetV2M:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    include_preprocessing=true name=efficientnetv2-m; EfficientNetV2S: include_top=true weights=imagenet input_tensor input_shape
    pooling classes=1000 classifier_activation=softmax include_preprocessing=true name=efficientnetv2-s; InceptionResNetV2:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=inception_resnet_v2; InceptionV3: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=inception_v3; MobileNet: input_shape alpha=1.0 depth_multiplier=1 dropout=0.001 include_top=true
    weights=imagenet input_tensor pooling classes=1000 classifier_activation=softmax name; MobileNetV2: input_shape alpha=1.0
    include_top=true weights=imagenet input_tensor pooling classes=1000 classifier_activation=softmax name; MobileNetV3Large:
    input_shape alpha=1.0 minimalistic=false include_top=true weights=imagenet input_tensor classes=1000 pooling dropout_rate=0.2
    classifier_activation=softmax include_preprocessing=true name=MobileNetV3Large; MobileNetV3Small: input_shape alpha=1.0
    minimalistic=false include_top=true weights=imagenet input_tensor classes=1000 pooling dropout_rate=0.2
    classifier_activation=softmax include_preprocessing=true name=MobileNetV3Small; NASNetLarge: input_shape include_top=true
    weights=imagenet input_tensor pooling classes=1000 classifier_activation=softmax name=nasnet_large; NASNetMobile: input_shape
    include_top=true weights=imagenet input_tensor pooling classes=1000 classifier_activation=softmax name=nasnet_mobile; ResNet101:
    include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=resnet101;
    ResNet101V2: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000 classifier_activation=softmax
    name=resnet101v2; ResNet152: include_top=true weights=imagenet input_tensor input_shape pooling classes=1000
    classifier_activation=softmax name=resnet152; ResNet152V2: include_top=true weights=imagenet input_tensor input_shape pooling
    classes=1000 classifier_activation=softmax name=resnet152v2; ResNet50: include_top=true weights=imagenet input_tensor input_shape
    pooling classes=1000 classifier_activation=softmax name=resnet50; ResNet50V2: include_top=true weights=imagenet input_tensor
    input_shape pooling classes=1000 classifier_activation=softmax name=resnet50v2; VGG16: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=vgg16; VGG19: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=vgg19; Xception: include_top=true weights=imagenet
    input_tensor input_shape pooling classes=1000 classifier_activation=softmax name=xception;
  ]],
  ["backend"] = [[
    clear_session: free_memory=true; get_uid: prefix; is_float_dtype: dtype; is_int_dtype: dtype; is_keras_tensor: x; set_epsilon:
    value; set_floatx: value; set_image_data_format: data_format; standardize_dtype: dtype;
  ]],
  ["config"] = [[
    set_backend: backend; set_dtype_policy: policy; set_epsilon: value; set_floatx: value; set_image_data_format: data_format;
    set_max_epochs: max_epochs; set_max_steps_per_epoch: max_steps_per_epoch;
  ]],
  ["distribution"] = [[
    DataParallel: device_mesh devices auto_shard_dataset=true; DeviceMesh: shape axis_names devices; LayoutMap: device_mesh;
    ModelParallel: layout_map batch_dim_name auto_shard_dataset=true; TensorLayout: axes device_mesh; distribute_tensor: tensor layout;
    get_device_count: device_type; initialize: job_addresses num_processes process_id; list_devices: device_type; set_distribution:
    value;
  ]],
  ["models"] = [[
    Sequential: layers trainable=true name; clone_model: model input_tensors clone_function call_function recursive=false; load_model:
    filepath custom_objects compile=true safe_mode=true; model_from_json: json_string custom_objects; save_model: model filepath
    overwrite=true zipped;
  ]],
  ["preprocessing"] = [[
    image_dataset_from_directory: directory labels=inferred label_mode=int class_names color_mode=rgb batch_size=32 image_size
    shuffle=true seed validation_split subset interpolation=bilinear follow_links=false crop_to_aspect_ratio=false
    pad_to_aspect_ratio=false data_format format=tf verbose=true; text_dataset_from_directory: directory labels=inferred label_mode=int
    class_names batch_size=32 max_length shuffle=true seed validation_split subset follow_links=false format=tf verbose=true;
    timeseries_dataset_from_array: data targets sequence_length sequence_stride=1 sampling_rate=1 batch_size=128 shuffle=false seed
    start_index end_index format=tf;
  ]],
  ["preprocessing.image"] = [[
    array_to_img: x data_format scale=true dtype; img_to_array: img data_format dtype; load_img: path color_mode=rgb target_size
    interpolation=nearest keep_aspect_ratio=false; save_img: path x data_format file_format scale=true; smart_resize: x size
    interpolation=bilinear data_format=channels_last;
  ]],
  ["preprocessing.sequence"] = [[
    pad_sequences: sequences maxlen dtype=int32 padding=pre truncating=pre value=0.0;
  ]],
  ["saving"] = [[
    CustomObjectScope: custom_objects; KerasFileEditor: filepath; custom_object_scope: custom_objects; deserialize_keras_object: config
    custom_objects safe_mode=true; get_registered_name: obj; get_registered_object: name custom_objects module_objects; load_model:
    filepath custom_objects compile=true safe_mode=true; load_weights: model filepath skip_mismatch=false; register_keras_serializable:
    package=Custom name; save_model: model filepath overwrite=true zipped; save_weights: model filepath overwrite=true max_shard_size;
    serialize_keras_object: obj;
  ]],
  ["tree"] = [[
    assert_same_paths: a b; assert_same_structure: a b check_types; flatten: structure; flatten_with_path: structure; is_nested:
    structure; lists_to_tuples: structure; map_shape_structure: func structure; map_structure: func none_is_leaf=true;
    map_structure_up_to: shallow_structure func; pack_sequence_as: structure flat_sequence; traverse: func structure top_down=true;
  ]],
}
