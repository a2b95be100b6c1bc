import { addTexts } from '../english';
import queue from './queue.json';

addTexts({ queue });
