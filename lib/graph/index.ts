export * from './calls';
export { cut, type Pass } from './cut';
export {
  type Call,
  type Coefficient,
  columns,
  type Dim,
  Graph,
  hasTokenRows,
  type LinearLayer,
  type Output,
  tokenRows,
  type Value,
} from './graph';
export * from './images';
export { memoised } from './memoised';
export * from './vision-transformer';
