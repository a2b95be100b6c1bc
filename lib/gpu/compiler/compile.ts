import { cut, type Graph, type Pass } from '../../graph';
import type { Lifetimes } from './arena';
import { attentionSteps } from './attention-steps';
import { linearSteps } from './linear-steps';
import { attentionOf, type Match, matchPatterns } from './patterns';
import {
  gatherHeadsStep,
  headRowsStep,
  layerNormStep,
  pointwiseStep,
  rmsNormStep,
  rowView,
  sumStep,
} from './row-steps';
import { type CompiledPass, type CompileOptions, GraphScope } from './scope';

/**
 * Compiles a graph to steps. No device is needed for it.
 *
 * @param lifetimes takes the memory of its values; graphs of one program follow each other in it
 * @throws Refusal for what no kernel computes
 */
export function compileGraph(
  graph: Graph,
  options: CompileOptions,
  lifetimes: Lifetimes,
): readonly CompiledPass[] {
  const scope = new GraphScope(graph, options, lifetimes);
  const passes = cut(graph, options.classed);
  const compiled = passes.map((pass, index) => compilePass(scope, pass, passes.slice(index + 1)));
  for (const [input, value] of graph.updates) {
    if (scope.at(value) !== scope.at(input)) {
      scope.refuse(value, 'is not computed in the place of the input that it updates');
    }
  }
  for (const [name, { value }] of graph.outputs) {
    const place = scope.at(value);
    if (place.kind !== 'bound' || place.name !== name) {
      scope.refuse(value, `is not computed in the place of the output ${name}`);
    }
  }
  return compiled;
}

function compilePass(scope: GraphScope, pass: Pass, later: readonly Pass[]): CompiledPass {
  return scope.pass(pass, () => {
    for (const match of matchPatterns(scope.graph, pass, later)) compileMatch(scope, match);
  });
}

function compileMatch(scope: GraphScope, match: Match): void {
  const { value } = match;
  switch (match.kind) {
    case 'linear': {
      const epilogue = match.gelu ? 'gelu' : 'none';
      linearSteps(scope, match.linear, { value, place: scope.make(value), epilogue, gate: null });
      if (attentionOf(scope.graph, value)?.whole) headRowsStep(scope, value, null, null);
      break;
    }
    case 'residual': {
      const { linear, residual, gate } = match;
      const place = scope.put(value, scope.at(residual));
      if (place.storage !== 'f32') scope.refuse(value, 'is added to rows that are not f32');
      linearSteps(scope, linear, { value, place, epilogue: gate ? 'gated' : 'added', gate });
      break;
    }
    case 'product': {
      const { linear, factor } = match;
      const place = scope.put(value, scope.at(factor));
      if (place.storage !== 'f32') scope.refuse(value, 'multiplies rows that are not f32');
      linearSteps(scope, linear, { value, place, epilogue: 'times', gate: null });
      break;
    }
    case 'rmsNorm':
      rmsNormStep(scope, value);
      break;
    case 'gatherHeads':
      gatherHeadsStep(scope, value);
      break;
    case 'layerNorm':
      layerNormStep(scope, value, match.norm);
      break;
    case 'headRows':
      headRowsStep(scope, value, match.norm, match.rotary);
      break;
    case 'attention':
      attentionSteps(scope, value);
      break;
    case 'sum':
      sumStep(scope, value, match.inPlace);
      break;
    case 'pointwise':
      pointwiseStep(scope, value);
      break;
    case 'row':
      rowView(scope, value);
      break;
  }
}
