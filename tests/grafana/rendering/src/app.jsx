// Draws /dashboard.json as Grafana would, from the real Prometheus behind /api/v1, and tells a test what became of it.
//
// The page's address says how: theme, from, to (milliseconds), and var-NAME, once for each value.
import React from 'react';
import { createRoot } from 'react-dom/client';
import { BrowserRouter } from 'react-router-dom';
import { catchError, map, of } from 'rxjs';
import { EventBusSrv, LoadingState, ThemeContext, createTheme } from '@grafana/data';
import { initPluginTranslations } from '@grafana/i18n';
import { FakeEchoSrv, config, setAppEvents, setDataSourceSrv, setEchoSrv, setPluginImportUtils, setRunRequest, setTemplateSrv, toDataQueryError } from '@grafana/runtime';
import { GlobalStyles, PortalContainer } from '@grafana/ui';
import {
  ConstantVariable, DataSourceVariable, EmbeddedScene, QueryVariable, SceneControlsSpacer, SceneDataTransformer, SceneGridItem, SceneGridLayout, SceneGridRow,
  SceneQueryRunner, SceneTimePicker, SceneTimeRange, SceneVariableSet, VariableValueSelectors, VizPanel, sceneGraph,
} from '@grafana/scenes';
import { plugins, registerStandards } from './panels.jsx';
import { Prometheus } from './prometheus.js';

const COLUMNS = 24;
const asked = new URLSearchParams(location.search);
const moment = (name) => (asked.has(name) ? new Date(Number(asked.get(name))).toISOString() : null);
const theme = createTheme({ colors: { mode: asked.get('theme') === 'light' ? 'light' : 'dark' } });
const settings = {
  id: 1, uid: 'prometheus', name: 'Prometheus', type: 'prometheus', url: '', isDefault: true, access: 'proxy', readOnly: true, jsonData: {},
  meta: { id: 'prometheus', name: 'Prometheus', type: 'datasource', metrics: true, info: { logos: { small: '', large: '' } } },
};
const prometheus = new Prometheus(settings);

function setUp() {
  config.theme2 = theme;
  registerStandards();
  setDataSourceSrv({ get: async () => prometheus, getInstanceSettings: () => settings, getList: () => [settings], reload: () => {}, registerRuntimeDataSource: () => {} });
  setPluginImportUtils({
    getPanelPluginFromCache: (id) => plugins[id],
    importPanelPlugin: async (id) => {
      if (!plugins[id]) {
        throw new Error(`nothing here draws a panel of type ${id}`);
      }
      return plugins[id];
    },
  });
  const within = (scoped) => scoped?.__sceneObject?.value?.valueOf() ?? window.__grafanaSceneContext;
  setTemplateSrv({
    getVariables: () => [],
    updateTimeRange: () => {},
    containsTemplate: (text) => /\$/.test(text ?? ''),
    replace: (text, scoped, format) => (text && within(scoped) ? sceneGraph.interpolate(within(scoped), text, scoped, format) : text ?? ''),
  });
  setRunRequest((source, request) => source.query(request).pipe(
    map(({ state, data }) => ({ state, series: data, timeRange: request.range, request, structureRev: 1 })),
    catchError((error) => of({ state: LoadingState.Error, series: [], error: toDataQueryError(error), timeRange: request.range, request }))));
  setAppEvents(new EventBusSrv());
  setEchoSrv(new FakeEchoSrv());
}

function variableOf({ type, name, label, query, datasource, refresh, sort, multi, includeAll, allValue, hide, current }) {
  if (type === 'datasource') {
    return new DataSourceVariable({ name, label, pluginId: query, value: 'prometheus', text: 'Prometheus' });
  }
  const chosen = asked.getAll(`var-${name}`);
  const value = chosen.length ? (multi ? chosen : chosen[0]) : current?.value;
  return new QueryVariable({
    name, label, datasource, refresh, sort, isMulti: multi, includeAll, allValue, hide, value, text: chosen.length ? value : current?.text,
    query: { query: query.query ?? query, refId: 'A' },
  });
}

let made = 0;
function panelOf(panel, scope) {
  const runner = new SceneQueryRunner({ datasource: panel.datasource ?? panel.targets?.[0]?.datasource, queries: panel.targets ?? [] });
  const transformed = panel.transformations?.length ? new SceneDataTransformer({ $data: runner, transformations: panel.transformations }) : runner;
  return new VizPanel({
    key: `panel-${++made}`, title: panel.title, description: panel.description, pluginId: panel.type, options: panel.options ?? {},
    fieldConfig: panel.fieldConfig ?? { defaults: {}, overrides: [] }, displayMode: panel.transparent ? 'transparent' : 'default',
    ...(panel.type === 'text' ? {} : { $data: transformed }), ...(scope ? { $variables: scope } : {}),
  });
}

/** A panel where the dashboard puts it; a repeated one side by side for each value of its variable, as wide as they fit. */
function placed(panel, scene) {
  const { x, y, w: width, h: height } = panel.gridPos;
  const values = panel.repeat ? [scene.state.$variables.getByName(panel.repeat).getValue()].flat() : [undefined];
  const across = panel.repeat ? Math.min(values.length, panel.maxPerRow ?? 4) : 1;
  const each = panel.repeat ? COLUMNS / across : width;
  return values.map((value, place) => new SceneGridItem({
    x: panel.repeat ? (place % across) * each : x, y: y + Math.floor(place / across) * height, width: each, height,
    body: panelOf(panel, value === undefined ? null : new SceneVariableSet({ variables: [new ConstantVariable({ name: panel.repeat, value, text: value })] })),
  }));
}

function layoutOf(dashboard, scene) {
  const rows = [];
  for (const panel of dashboard.panels) {
    if (panel.type === 'row') {
      rows.push({ panel, children: (panel.panels ?? []).flatMap((each) => placed(each, scene)) });
    } else {
      (rows.at(-1)?.children ?? rows).push(...placed(panel, scene));
    }
  }
  return new SceneGridLayout({
    children: rows.map((row) => (row.panel
      ? new SceneGridRow({ title: row.panel.title, y: row.panel.gridPos.y, isCollapsible: true, isCollapsed: false, children: row.children })
      : row)),
  });
}

const runnerOf = (panel) => (panel.state.$data instanceof SceneDataTransformer ? panel.state.$data.state.$data : panel.state.$data);
const panelsOf = (scene) => sceneGraph.findAllObjects(scene, (each) => each instanceof VizPanel);
const colourful = ([red, green, blue]) => Math.max(red, green, blue) - Math.min(red, green, blue) > 60;

/** How many different bright colours a canvas shows: 0 is an empty plot. */
function colours(canvas) {
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const found = new Set();
  for (let at = 0; at < pixels.length; at += 4) {
    const pixel = pixels.subarray(at, at + 3);
    if (pixels[at + 3] > 100 && colourful(pixel)) {
      found.add(pixel.join());
    }
  }
  return found.size;
}

/** Names in a legend whose colour is nowhere on the plot: another line hides theirs. */
function hiddenLines(root) {
  const icons = [...root.querySelectorAll('[data-testid="series-icon"]')];
  const asked = icons.map((icon) => {
    const { backgroundColor, backgroundImage } = getComputedStyle(icon);
    const colour = /rgba?\((\d+), (\d+), (\d+)/.exec(backgroundImage === 'none' ? backgroundColor : backgroundImage);
    return { name: icon.parentElement.textContent.trim(), colour: colour.slice(1).map(Number), drawn: false };
  });
  for (const canvas of icons.length ? root.querySelectorAll('canvas') : []) {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    for (const each of asked) {
      for (let at = 0; at < pixels.length && !each.drawn; at += 4) {
        each.drawn = pixels[at + 3] > 60 && each.colour.every((part, channel) => Math.abs(part - pixels[at + channel]) < 10);
      }
    }
  }
  return asked.filter(({ drawn }) => !drawn).map(({ name }) => name);
}

/** Rows of a table, or of its page, that are beyond its edge, whole or in part: nothing shows that it scrolls. */
function hiddenRows(root) {
  return [...root.querySelectorAll('[role=grid]')].flatMap((grid) => {
    const edge = grid.getBoundingClientRect().top + grid.clientTop + grid.clientHeight;
    // A row has no box of its own.
    return [...grid.querySelectorAll('[role=row]')].filter((row) => row.firstElementChild.getBoundingClientRect().bottom > edge + 2)
      .map((row) => row.innerText.replace(/\s+/g, ' ').trim());
  });
}

/** How many pages a table offers; 1 where it offers none. */
const pagesOf = (root) => Math.max(1, ...[...root.querySelectorAll('.table-ng-pagination li')].map((each) => Number(each.textContent) || 0));

/** Texts in `root` that are wider than what shows them, or below the edge of a part that does not look scrollable. */
function cutOff(root) {
  const found = [];
  const box = root.getBoundingClientRect();
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const parent = walker.currentNode.parentElement;
    if (!text || !parent || getComputedStyle(parent).visibility === 'hidden') {
      continue;
    }
    const range = document.createRange();
    range.selectNodeContents(walker.currentNode);
    const drawn = range.getBoundingClientRect();
    if (!drawn.width) {
      continue;
    }
    for (let around = parent; around && around !== root.parentElement; around = around.parentElement) {
      if (around.role === 'grid') {
        break; // A table scrolls; `hiddenRows` asks whether it has to.
      }
      const style = getComputedStyle(around);
      const edge = around.getBoundingClientRect();
      if (style.overflowX !== 'visible' && (drawn.right > edge.right + 1.5 || drawn.left < edge.left - 1.5)) {
        found.push(`${text} (beyond the side)`);
        break;
      }
      if (style.overflowY !== 'visible' && (drawn.bottom > edge.bottom + 3 || drawn.top < edge.top - 3)) {
        found.push(`${text} (beyond the top or bottom)`);
        break;
      }
      if (around === root && (drawn.right > box.right + 1.5 || drawn.bottom > box.bottom + 3)) {
        found.push(`${text} (beyond the panel)`);
      }
    }
  }
  return [...new Set(found)];
}

/** What a test asks of every panel: its state, what each query gave, what is drawn, and what of it cannot be read. */
function report(scene) {
  return panelsOf(scene).map((panel) => {
    const root = document.querySelector(`[data-viz-panel-key="${panel.state.key}"]`);
    const title = sceneGraph.interpolate(panel, panel.state.title);
    const runner = runnerOf(panel);
    const data = runner ? sceneGraph.getData(panel).state.data : null;
    const frames = runner?.state.data?.series ?? [];
    return {
      title,
      type: panel.state.pluginId,
      state: runner ? data?.state : 'Done',
      error: data?.error?.message ?? panel.state._pluginLoadError ?? root?.querySelector('[data-testid="data-testid Panel status error"]')?.textContent ?? null,
      series: Object.fromEntries((runner?.state.queries ?? []).map(({ refId }) => [refId, frames.filter((frame) => frame.refId === refId && frame.length).length])),
      noData: root?.querySelector('[data-no-data]')?.dataset.noData ?? null,
      drawn: Boolean(root),
      colours: [...(root?.querySelectorAll('canvas') ?? [])].reduce((sum, canvas) => sum + colours(canvas), 0),
      cut: root ? cutOff(root) : [],
      hiddenLines: root ? hiddenLines(root) : [],
      hiddenRows: root ? hiddenRows(root) : [],
      pages: root ? pagesOf(root) : 1,
      sideways: [...(root?.querySelectorAll('[role=grid]') ?? [])].some((grid) => grid.scrollWidth > grid.clientWidth + 1),
      text: root?.innerText ?? '',
    };
  });
}

async function annotationsOf(dashboard, scene) {
  const range = sceneGraph.getTimeRange(scene).state.value;
  const queries = (dashboard.annotations?.list ?? []).filter(({ expr, enable }) => expr && enable);
  const found = await Promise.all(queries.map((each) => prometheus.annotations(each, range, (text, format) => sceneGraph.interpolate(scene, text, {}, format))));
  return found.flat();
}

const settled = (scene) => !scene.state.$variables.state.variables.some((each) => scene.state.$variables.isVariableLoadingOrWaitingToUpdate(each));
const done = (panel) => !runnerOf(panel) || ['Done', 'Error'].includes(sceneGraph.getData(panel).state.data?.state);
const until = async (condition) => {
  while (!condition()) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

async function main() {
  await initPluginTranslations('grafana-scenes');
  setUp();
  const dashboard = await (await fetch('/dashboard.json')).json();
  const scene = new EmbeddedScene({
    $timeRange: new SceneTimeRange({ from: moment('from') ?? dashboard.time.from, to: moment('to') ?? dashboard.time.to, timeZone: 'utc' }),
    $variables: new SceneVariableSet({ variables: dashboard.templating.list.map(variableOf) }),
    controls: [new VariableValueSelectors({}), new SceneControlsSpacer(), new SceneTimePicker({})],
    body: new SceneGridLayout({ children: [] }),
  });
  window.__scene = scene;
  await document.fonts.ready;
  const padding = { padding: 16, background: theme.colors.background.canvas, minHeight: '100vh', display: 'flex', flexDirection: 'column', gap: 12 };
  createRoot(document.getElementById('root')).render(
    <BrowserRouter>
      <ThemeContext.Provider value={theme}>
        <GlobalStyles />
        <div style={padding}>
          <h1 style={{ fontSize: 18, margin: 0 }}>{dashboard.title}</h1>
          <scene.Component model={scene} />
        </div>
        <PortalContainer />
      </ThemeContext.Provider>
    </BrowserRouter>);
  await until(() => scene.isActive && settled(scene));
  window.__annotations = await annotationsOf(dashboard, scene);
  scene.setState({ body: layoutOf(dashboard, scene) });
  await until(() => panelsOf(scene).every(done));
  window.__report = () => report(scene);
  window.__ready = true;
}

main().catch((error) => { window.__failed = String(error.stack ?? error); });
