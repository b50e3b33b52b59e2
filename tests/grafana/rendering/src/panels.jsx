// The panel plugins are Grafana core's and not on npm; these wrap the components of @grafana/ui that they draw with.
import React, { useLayoutEffect, useMemo, useRef } from 'react';
import {
  FieldColorModeId, FieldType, PanelPlugin, ThresholdsMode, VizOrientation, booleanOverrideProcessor, cacheFieldDisplayNames,
  dataLinksOverrideProcessor, displayNameOverrideProcessor, getDisplayValueAlignmentFactors, getFieldDisplayValues,
  identityOverrideProcessor, numberOverrideProcessor, renderMarkdown, standardFieldConfigEditorRegistry, standardTransformers,
  standardTransformersRegistry, stringOverrideProcessor, thresholdsOverrideProcessor, unitOverrideProcessor, valueMappingsOverrideProcessor,
} from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, VizRepeater, useTheme2 } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { defaultOptions as statDefaults } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import { defaultOptions as barGaugeDefaults } from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';

const nothing = () => null;
const option = (path, process, more = {}) => ({
  id: path, path, name: path, description: '', editor: nothing, override: nothing, process, shouldApply: () => true, settings: {}, ...more,
});

/** Fill the registries that Grafana core fills at its start: @grafana/data ships them empty. */
export function registerStandards() {
  const steps = [{ value: -Infinity, color: 'green' }, { value: 80, color: 'red' }];
  standardFieldConfigEditorRegistry.setInit(() => [
    option('displayName', displayNameOverrideProcessor),
    option('unit', unitOverrideProcessor),
    option('min', numberOverrideProcessor),
    option('max', numberOverrideProcessor),
    option('fieldMinMax', booleanOverrideProcessor),
    option('decimals', numberOverrideProcessor),
    option('noValue', stringOverrideProcessor),
    option('color', identityOverrideProcessor, { defaultValue: { mode: FieldColorModeId.Thresholds } }),
    option('thresholds', thresholdsOverrideProcessor, { defaultValue: { mode: ThresholdsMode.Absolute, steps } }),
    option('mappings', valueMappingsOverrideProcessor, { defaultValue: [] }),
    option('links', dataLinksOverrideProcessor, { defaultValue: [] }),
    option('actions', identityOverrideProcessor),
    option('filterable', booleanOverrideProcessor),
  ]);
  const transformations = new Map(Object.values(standardTransformers).map((each) => [each.id, each]));
  standardTransformersRegistry.setInit(() =>
    [...transformations.values()].map((transformation) => ({ id: transformation.id, name: transformation.name, transformation, editor: nothing })));
}

/** A panel's own options: without their defaults here, what the dashboard leaves out would be undefined. */
const options = (defaults) => (builder) => {
  for (const [path, defaultValue] of Object.entries(defaults)) {
    builder.addCustomEditor({ id: path, path, name: path, editor: nothing, defaultValue });
  }
};
/** A panel's `custom` field options: an override of one that is not registered is ignored in silence. */
const custom = (defaults) => (builder) => {
  for (const [path, defaultValue] of Object.entries(defaults)) {
    builder.addCustomEditor({ ...option(path, identityOverrideProcessor, { defaultValue }), hideFromDefaults: false });
  }
};
const HIDE_FROM = { tooltip: false, viz: false, legend: false };

const isEmpty = (data) => !data.series.some((frame) => frame.length > 0 && frame.fields.length > 0);

function NoData({ fieldConfig }) {
  const text = fieldConfig?.defaults?.noValue ?? 'No data';
  const style = { height: '100%', display: 'flex', alignItems: 'center', justifyContent: 'center', textAlign: 'center', padding: '0 24px' };
  return <div data-no-data={text} style={style}>{text}</div>;
}

/** Vertical lines where an annotation is, as Grafana draws them; a child of the plot, which it hooks into before it is made. */
function AnnotationMarks({ config, marks }) {
  const theme = useTheme2();
  const latest = useRef(marks);
  latest.current = marks;
  useLayoutEffect(() => {
    config.addHook('draw', (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = theme.colors.text.secondary;
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([4, 4]);
      for (const { time } of latest.current) {
        const x = Math.round(plot.valToPos(time, 'x', true));
        if (x >= bbox.left && x <= bbox.left + bbox.width) {
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          ctx.fillRect(x - 3, bbox.top + bbox.height, 7, 4);
        }
      }
      ctx.restore();
    });
  }, [config, theme]);
  return null;
}

function TimeSeriesPanel({ data, timeRange, timeZone, width, height, options: chosen, fieldConfig }) {
  const frames = useMemo(() => data.series.filter((frame) => frame.length
    && frame.fields.some(({ type }) => type === FieldType.time) && frame.fields.some(({ type }) => type === FieldType.number)), [data.series]);
  if (!frames.length) {
    return <NoData fieldConfig={fieldConfig} />;
  }
  return (
    <TimeSeries frames={frames} structureRev={data.structureRev} timeRange={timeRange} timeZone={timeZone} width={width} height={height} legend={chosen.legend} options={chosen}>
      {(config) => <AnnotationMarks config={config} marks={window.__annotations ?? []} />}
    </TimeSeries>
  );
}
const timeseries = new PanelPlugin(TimeSeriesPanel).useFieldConfig({
  standardOptions: { color: { settings: {}, defaultValue: { mode: FieldColorModeId.PaletteClassic } } },
  useCustomConfig: custom({
    drawStyle: 'line', lineInterpolation: 'linear', barAlignment: 0, barWidthFactor: 0.6, lineWidth: 1, fillOpacity: 0, gradientMode: 'none',
    fillBelowTo: undefined, lineStyle: { fill: 'solid' }, spanNulls: false, insertNulls: false, showPoints: 'auto', showValues: false, pointSize: 5,
    stacking: { mode: 'none', group: 'A' }, transform: undefined, axisPlacement: 'auto', axisLabel: '', axisWidth: undefined,
    axisSoftMin: undefined, axisSoftMax: undefined, axisGridShow: undefined, axisBorderShow: false, axisCenteredZero: false, axisColorMode: 'text',
    scaleDistribution: { type: 'linear' }, thresholdsStyle: { mode: 'off' }, hideFrom: HIDE_FROM, lineColor: undefined, pointColor: undefined, fillColor: undefined,
  }),
}).setPanelOptions(options({
  legend: { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] },
  tooltip: { mode: 'single', sort: 'none' },
}));

function TablePanel({ data, width, height, options: chosen, timeRange, fieldConfig }) {
  // Else the headers are the names from before `organize`.
  useMemo(() => cacheFieldDisplayNames(data.series), [data.series]);
  if (isEmpty(data)) {
    return <NoData fieldConfig={fieldConfig} />;
  }
  const frame = data.series[chosen.frameIndex ?? 0] ?? data.series[0];
  return (
    <TableNG data={frame} width={width} height={height} structureRev={data.structureRev} timeRange={timeRange} noHeader={!chosen.showHeader}
      showTypeIcons={chosen.showTypeIcons} cellHeight={chosen.cellHeight} resizable initialSortBy={chosen.sortBy} enablePagination={chosen.enablePagination} enableVirtualization={false} fieldConfig={fieldConfig} />
  );
}
const table = new PanelPlugin(TablePanel).useFieldConfig({
  useCustomConfig: custom({
    width: undefined, minWidth: undefined, align: 'auto', cellOptions: { type: 'auto' }, inspect: false, filterable: undefined,
    wrapText: undefined, wrapHeaderText: undefined, hideFrom: HIDE_FROM, footer: undefined, tooltip: undefined,
  }),
}).setPanelOptions(options({ showHeader: true, frameIndex: 0, cellHeight: 'sm' }));

const REDUCE = { reduceOptions: { calcs: ['lastNotNull'], values: false, fields: '' }, orientation: VizOrientation.Auto, text: {} };

function Values({ panel, sparkline = false, autoMinMax = false, alignment = true, render, ...layout }) {
  const { data, fieldConfig, replaceVariables, timeZone, width, height, renderCounter } = panel;
  const theme = useTheme2();
  if (isEmpty(data)) {
    return <NoData fieldConfig={fieldConfig} />;
  }
  const getValues = () => getFieldDisplayValues({
    fieldConfig, reduceOptions: panel.options.reduceOptions, replaceVariables, theme, data: data.series, sparkline, timeZone, ...(autoMinMax ? { autoMinMax } : {}),
  });
  return (
    <VizRepeater getValues={getValues} renderValue={(each) => render(each, theme)} width={width} height={height} source={data}
      getAlignmentFactors={alignment ? getDisplayValueAlignmentFactors : undefined} renderCounter={renderCounter} {...layout} />
  );
}

function StatPanel(panel) {
  const { options: chosen, data, fieldConfig } = panel;
  const draw = ({ value, width, height, count, alignmentFactors }, theme) => {
    const single = (count === 1 || data.series.length === 1) && !fieldConfig.defaults.displayName;
    const textMode = chosen.textMode === 'auto' && single ? 'value' : chosen.textMode;
    return (
      <BigValue value={value.display} count={count} sparkline={value.sparkline} colorMode={chosen.colorMode} graphMode={chosen.graphMode} justifyMode={chosen.justifyMode}
        textMode={textMode} alignmentFactors={alignmentFactors} text={chosen.text} width={width} height={height} theme={theme} disableWideLayout={!chosen.wideLayout} />
    );
  };
  return <Values panel={panel} sparkline={chosen.graphMode !== 'none'} autoGrid itemSpacing={3} orientation={chosen.orientation} render={draw} />;
}

function BarGaugePanel(panel) {
  const { options: chosen } = panel;
  const wide = panel.width > panel.height ? VizOrientation.Vertical : VizOrientation.Horizontal;
  const automatic = chosen.sizing !== 'manual';
  const draw = ({ value, width, height, orientation, alignmentFactors }, theme) => (
    <BarGauge value={value.display} field={value.field} display={value.view?.getFieldDisplayProcessor(value.colIndex)} width={width} height={height} orientation={orientation}
      text={chosen.text} itemSpacing={10} lcdCellWidth={12} displayMode={chosen.displayMode} theme={theme} isOverflow={false} alignmentFactors={alignmentFactors}
      showUnfilled={chosen.showUnfilled} valueDisplayMode={chosen.valueMode} namePlacement={chosen.namePlacement} />
  );
  return (
    <Values panel={panel} autoMinMax orientation={chosen.orientation !== VizOrientation.Auto ? chosen.orientation : wide} itemSpacing={10}
      minVizWidth={automatic ? 8 : chosen.minVizWidth} minVizHeight={automatic ? 16 : chosen.minVizHeight} maxVizHeight={automatic ? 300 : chosen.maxVizHeight} render={draw} />
  );
}

const TextPanel = ({ options: chosen, replaceVariables }) =>
  <div className="markdown-html" dangerouslySetInnerHTML={{ __html: renderMarkdown(replaceVariables(chosen.content ?? '')) }} />;

const made = {
  timeseries,
  table,
  stat: new PanelPlugin(StatPanel).useFieldConfig().setPanelOptions(options({ ...REDUCE, ...statDefaults })),
  bargauge: new PanelPlugin(BarGaugePanel).useFieldConfig().setPanelOptions(options({ ...REDUCE, ...barGaugeDefaults })),
  text: new PanelPlugin(TextPanel).setPanelOptions(options({ content: '', mode: 'markdown' })),
};
const info = { author: { name: '' }, description: '', links: [], logos: { large: '', small: '' }, screenshots: [], updated: '', version: '' };

export const plugins = Object.fromEntries(Object.entries(made).map(([id, plugin]) => {
  plugin.meta = { id, name: id, type: 'panel', module: id, baseUrl: id, skipDataQuery: id === 'text', info };
  return [id, plugin];
}));
