import { startServiceWorker } from '../lib/offline/service-worker';

startServiceWorker();
