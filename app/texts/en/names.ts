import { componentTexts, outcomeNames, phaseNames } from '../../../lib/contract';

/** Names that page and command line share. */
export const names = {
  phase: phaseNames,
  /** As the form calls them. */
  profile: { standard: 'Standard', 'ultra-fast': 'Draft' },
  component: componentTexts,
  outcome: outcomeNames,
};
