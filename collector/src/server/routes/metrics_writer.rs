//! Writes metrics in the format of OpenMetrics.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::gauge::ConstGauge;

/// Writes metrics.
pub(super) struct MetricsWriter<'a>(DescriptorEncoder<'a>);

impl<'a> MetricsWriter<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    pub(super) fn one(&mut self, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
        metric.encode(self.0.encode_descriptor(name, help, None, metric.metric_type())?)
    }

    pub(super) fn family<M: EncodeMetric + TypedMetric, L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        metrics: impl IntoIterator<Item = (L, M)>,
    ) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, M::TYPE)?;
        for (labels, metric) in metrics {
            metric.encode(encoder.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// Returns a gauge. Prometheus clients commonly keep gauges as signed integers, so the value is limited to those: beyond, it
/// would turn negative there.
pub(super) fn gauge(value: u64) -> ConstGauge<u64> {
    ConstGauge::new(value.min(i64::MAX as u64))
}
