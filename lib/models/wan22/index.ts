export { Wan22, wan22Family } from './wan22';
