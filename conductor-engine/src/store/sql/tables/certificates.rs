//! Certificates of erasure.

use crate::evidence::erasing::EraseCertificate;
use crate::store::CertificateChange;
use crate::store::sql::statement::{Connection, Reader, Statement};
use crate::store::sql::{Outcome, statements as sql};
use uuid::Uuid;

/// Writes what changed of the certificates of a node's disks.
pub async fn write(
    connection: &mut impl Connection,
    node: Uuid,
    change: CertificateChange<'_>,
) -> Outcome<()> {
    if change.forgets {
        connection.execute(Statement::new(sql::DELETE_CERTIFICATES).bind(node)).await?;
    }
    for certificate in change.new {
        let put = Statement::new(sql::PUT_CERTIFICATE)
            .bind(node)
            .bind(certificate.disk.clone())
            .bind(certificate.statement.step())
            .bind(serde_json::to_string(certificate)?);
        connection.execute(put).await?;
    }
    Ok(())
}

/// The certificates of a node's disks.
pub async fn of(readers: &mut impl Reader, node: Uuid) -> Outcome<Vec<EraseCertificate>> {
    readers.documents(Statement::new(sql::CERTIFICATES).bind(node)).await
}
