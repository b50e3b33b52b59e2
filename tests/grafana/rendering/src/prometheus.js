// Prometheus's HTTP API as a data source of Grafana: frames of the shape that Grafana's own data source gives.
import { DataSourceApi, FieldType, LoadingState, createDataFrame } from '@grafana/data';
import { getTemplateSrv } from '@grafana/runtime';
import { from } from 'rxjs';

const SCRAPE_SECONDS = 1200; // what the data source's "Scrape interval" would say: STEP of tests/grafana/history.py

/** Escape one value of a variable as Grafana does inside a regular expression of a query. */
const escape = (text) => String(text).replace(/\\/g, '\\\\\\\\').replace(/[$^*{}[\]+?.()|]/g, '\\\\$&');
function quoted(value, variable) {
  if (Array.isArray(value)) {
    return value.length === 1 ? escape(value[0]) : `(${value.map(escape).join('|')})`;
  }
  return variable?.multi || variable?.includeAll ? escape(value) : String(value).replace(/\\/g, '\\\\').replace(/'/g, "\\\\'");
}

function legend(format, { __name__: name = '', ...labels }, expression) {
  if (format && format !== '__auto') {
    return format.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, key) => ({ ...labels, __name__: name })[key] ?? '');
  }
  const text = Object.entries(labels).map(([key, value]) => `${key}="${value}"`).join(', ');
  return text || name ? `${name}${text ? `{${text}}` : ''}` : expression;
}

const number = (text) => ({ '+Inf': Infinity, '-Inf': -Infinity })[text] ?? Number(text);

export class Prometheus extends DataSourceApi {
  async get(path, parameters) {
    const answer = await fetch(`/api/v1/${path}?${new URLSearchParams(parameters)}`);
    const body = await answer.json();
    if (body.status !== 'success') {
      throw new Error(`${body.errorType}: ${body.error}`);
    }
    return body.data;
  }

  testDatasource() {
    return Promise.resolve({ status: 'success', message: '' });
  }

  query(request) {
    return from(this.run(request));
  }

  async run(request) {
    const step = Math.max(Math.round((request.intervalMs || 0) / 1000), SCRAPE_SECONDS);
    const scoped = {
      ...request.scopedVars,
      __interval: { value: `${step}s` },
      __interval_ms: { value: step * 1000 },
      __rate_interval: { value: `${Math.max(step + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS)}s` },
    };
    const [start, end] = [request.range.from.valueOf() / 1000, request.range.to.valueOf() / 1000];
    scoped.__range = { value: `${Math.round(end - start)}s` };
    const targets = request.targets.filter((target) => !target.hide && target.expr);
    const answers = await Promise.all(targets.map(async (target) => {
      const expression = getTemplateSrv().replace(target.expr, scoped, quoted);
      const data = target.instant
        ? await this.get('query', { query: expression, time: end })
        : await this.get('query_range', { query: expression, start: Math.floor(start / step) * step, end: Math.floor(end / step) * step, step });
      const result = data.resultType === 'scalar' ? [{ metric: {}, value: data.result }] : data.result;
      return { target, expression, step, result };
    }));
    const several = answers.filter(({ target }) => target.format === 'table').length > 1;
    const data = answers.flatMap((answer) => (answer.target.format === 'table' ? tableOf(answer, several) : linesOf(answer)));
    return { state: LoadingState.Done, data };
  }

  /** The moments at which an annotation's query has a sample above 0, with their texts. */
  async annotations(annotation, range, interpolate) {
    const step = Math.max(SCRAPE_SECONDS, Math.ceil((range.to.valueOf() - range.from.valueOf()) / 1000 / 1000 / 60) * 60);
    const expression = interpolate(annotation.expr.replaceAll('$__interval', `${step}s`), quoted);
    const [start, end] = [range.from, range.to].map((moment) => Math.floor(moment.valueOf() / 1000 / step) * step);
    const { result } = await this.get('query_range', { query: expression, start, end, step });
    return result.flatMap(({ metric, values }) =>
      values.filter(([, value]) => number(value) > 0).map(([time]) => ({ time: time * 1000, text: legend(annotation.titleFormat, metric, expression) })));
  }

  async metricFindQuery(query, options) {
    const text = getTemplateSrv().replace(query.query ?? query, options?.scopedVars, quoted);
    const found = /^label_values\((?:(.+),\s*)?([a-zA-Z_]\w*)\)\s*$/.exec(text);
    if (!found) {
      throw new Error(`not a query for a variable: ${text}`);
    }
    const values = await this.get(`label/${found[2]}/values`, {
      ...(found[1] ? { 'match[]': found[1] } : {}),
      start: options.range.from.valueOf() / 1000,
      end: options.range.to.valueOf() / 1000,
    });
    return values.map((value) => ({ text: value }));
  }
}

function linesOf({ target, expression, step, result }) {
  return result.map(({ metric, value, values = [value] }) => {
    const name = legend(target.legendFormat, metric, expression);
    return createDataFrame({
      refId: target.refId,
      name,
      meta: { type: 'timeseries-multi', executedQueryString: expression },
      fields: [
        { name: 'Time', type: FieldType.time, config: { interval: step * 1000 }, values: values.map(([time]) => time * 1000) },
        { name: 'Value', type: FieldType.number, labels: metric, config: { displayNameFromDS: name }, values: values.map(([, text]) => number(text)) },
      ],
    });
  });
}

function tableOf({ target, expression, result }, several) {
  if (!result.length) {
    return [];
  }
  const labels = [...new Set(result.flatMap(({ metric }) => Object.keys(metric)))].sort();
  const rows = result.flatMap(({ metric, value, values = [value] }) => values.map(([time, text]) => [time * 1000, metric, number(text)]));
  return [createDataFrame({
    refId: target.refId,
    meta: { preferredVisualisationType: 'table', executedQueryString: expression },
    fields: [
      { name: 'Time', type: FieldType.time, config: {}, values: rows.map(([time]) => time) },
      ...labels.map((label) => ({ name: label, type: FieldType.string, config: { filterable: true }, values: rows.map(([, metric]) => metric[label] ?? '') })),
      { name: several ? `Value #${target.refId}` : 'Value', type: FieldType.number, config: {}, values: rows.map(([, , value]) => value) },
    ],
  })];
}
