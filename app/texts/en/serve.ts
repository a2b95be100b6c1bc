import { addTexts } from '../english';
import serve from './serve.json';

addTexts({ serve });
