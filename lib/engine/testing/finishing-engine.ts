/** The engine with one frame per second, and a tiny network that puts frames between frames. */
import './short-videos';
import { appUrl } from '../../contract/site';
import { modelFamilies } from '../../models';
import { httpFolder } from '../../weights';
import { startEngine } from '../engine';
import { installedTools } from '../tools';

const folder = httpFolder(appUrl('/lib/finishing/goldens/tiny-rife/'));
const finisher = () => folder.open('model.safetensors');
startEngine({ families: modelFamilies, tools: { ...installedTools, finisher } });
