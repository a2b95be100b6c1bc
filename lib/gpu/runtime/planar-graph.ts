import { filterDims, type Graph, type Value } from '../../graph';
import * as onnx from '../../onnx';
import { elementWise } from './emit';

type Float = onnx.Value<'float32'>;

/** GridSample has a kernel on a GPU for operator sets 16 to 19 only. */
const opset = 19;

const graphs = new WeakMap<Graph, onnx.Graph>();

/**
 * A graph of images as one graph of the runtime, for calls that nothing else computes. Its images are planar,
 * [1, C, H, W], as GridSample reads them; tensors of layers are bound as `name.weight` and `name.bias`.
 *
 * @throws TypeError for a call that it has no operator for
 */
export function planarGraph(graph: Graph): onnx.Graph {
  const made = graphs.get(graph) ?? emitPlanar(graph);
  graphs.set(graph, made);
  return made;
}

function emitPlanar(graph: Graph): onnx.Graph {
  const g = new onnx.GraphBuilder(graph.name, opset);
  const emitted = new Map<Value, Float>();
  /** By first channel: several images are read at the same places. */
  const grids = new Map<Value, Map<number, Float>>();
  const of = (value: Value | undefined) => {
    const known = value && emitted.get(value);
    if (!known) throw new TypeError(`${graph.name}: a call reads what is not computed`);
    return known;
  };
  const gridAt = (flow: Value, first: number) => {
    const known = grids.get(flow) ?? new Map<number, Float>();
    const grid = known.get(first) ?? gridOf(of(flow), first);
    grids.set(flow, known.set(first, grid));
    return grid;
  };
  const operators = ({ call, operands, dims }: Value): Float => {
    const x = () => of(operands[0]);
    switch (call.op) {
      case 'input': {
        const [height = 0, width = 0, channels = 0] = dims;
        return g.input(call.name, 'float32', [1, channels, height, width]);
      }
      case 'convolution': {
        const { layer } = call;
        if (layer.taps > 1 || layer.depthwise || layer.average || layer.kernel === 2) break;
        const weight = g.input(`${layer.name}.weight`, 'float32', filterDims(layer));
        const bias = layer.bias ? g.input(`${layer.name}.bias`, 'float32', [layer.filters]) : null;
        const edge = (layer.kernel - 1) / 2;
        const before = layer.stride === 1 || layer.around ? edge : 0;
        const pads = [before, before, edge, edge] as const;
        return onnx.conv2d(x(), weight, bias, 'nchw', { stride: layer.stride, pads });
      }
      case 'leakyRelu':
        return onnx.leakyRelu(x(), call.slope);
      case 'sigmoid':
        return onnx.sigmoid(x());
      case 'add':
      case 'sub':
      case 'mul':
        return elementWise[call.op](x(), of(operands[1]));
      case 'weightedSum': {
        const terms = call.coefficients.map((coefficient, i) => {
          if (typeof coefficient === 'string') throw new TypeError(`${coefficient} is not known`);
          return onnx.mul(of(operands[i]), g.scalar(coefficient));
        });
        return terms.reduce((a, b) => onnx.add(a, b));
      }
      case 'concat':
        return onnx.concat(operands.map(of), 1);
      case 'channels':
        return onnx.slice(x(), 1, call.start, call.end);
      case 'depthToSpace':
        return onnx.depthToSpace(x(), call.block, 'nchw');
      case 'resize':
        return onnx.resizeLinear(x(), call.scale);
      case 'warp':
        return onnx.gridSample(x(), gridAt(operands[1] as Value, call.first));
    }
    throw new TypeError(`${graph.name}: ${call.op} is not emitted for planar images`);
  };
  for (const value of graph.values) emitted.set(value, operators(value));
  for (const [name, { value }] of graph.outputs) g.output(name, of(value));
  return g.build();
}

/** Where GridSample reads an image, [1, H, W, 2] in −1…1: columns and rows of `flow` from channel `first` on. */
function gridOf(flow: Float, first: number): Float {
  const { graph } = flow;
  const [, , h, w] = flow.dims.map(Number) as [number, number, number, number];
  const along = (channel: number, size: number, dims: readonly number[]) => {
    const places = Float32Array.from({ length: size }, (_, i) => (2 * i) / (size - 1) - 1);
    const shift = onnx.mul(onnx.slice(flow, 1, channel, channel + 1), graph.scalar(2 / (size - 1)));
    const place = onnx.add(shift, graph.constant('float32', dims, places));
    return onnx.reshape(place, [1, h, w, 1]);
  };
  return onnx.concat([along(first, w, [1, 1, 1, w]), along(first + 1, h, [1, 1, h, 1])], 3);
}
