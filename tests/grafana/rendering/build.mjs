// Bundles src/app.jsx for the page: node build.mjs TO
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const [to] = process.argv.slice(2);

// @grafana/scenes imports `defaultOptions` of the table, which @grafana/schema no longer exports; nothing here calls it.
const tableDefaults = {
  name: 'table-defaults',
  setup(bundle) {
    const contents = 'export const pluginVersion = ""; export const defaultOptions = {};';
    bundle.onLoad({ filter: /table\/panelcfg\/x\/types\.gen\.mjs$/ }, () => ({ contents, loader: 'js' }));
  },
};

// The code editor would be half of the bundle, and no panel shows one.
const noEditor = {
  name: 'no-editor',
  setup(bundle) {
    const filter = /^(monaco-editor|@monaco-editor\/react)(\/|$)/;
    bundle.onResolve({ filter }, ({ path }) => ({ path, namespace: 'empty' }));
    bundle.onLoad({ filter: /.*/, namespace: 'empty' }, () => ({ contents: 'module.exports = {}', loader: 'js' }));
  },
};

await build({
  entryPoints: [join(import.meta.dirname, 'src/app.jsx')],
  outfile: join(to, 'app.js'),
  bundle: true,
  minify: true,
  format: 'iife',
  platform: 'browser',
  target: 'chrome110',
  jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"production"', 'process.env.JEST_WORKER_ID': 'undefined', global: 'window' },
  loader: { '.svg': 'text', '.woff2': 'dataurl', '.ttf': 'dataurl' },
  logLevel: 'warning',
  plugins: [tableDefaults, noEditor],
});
copyFileSync(join(import.meta.dirname, 'src/index.html'), join(to, 'index.html'));
