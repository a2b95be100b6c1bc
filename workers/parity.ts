import { startParity } from '../lib/engine/parity';

startParity();
